// As many float32 numbers as one register of the processor holds: wider vector types are kept in memory by some
// compilers, and a probe would measure that.
#pragma once

#include "common/intrinsics.h"
#include "common/lanes.h"

namespace quantgate {

#if QUANTGATE_AVX512
using OneRegister = Lanes;
#elif defined(__AVX__)
using OneRegister = EightLanes;
#else
using OneRegister = FourLanes;
#endif

constexpr int64_t REGISTER_NUMBERS = sizeof(OneRegister) / sizeof(float);

}  // namespace quantgate
