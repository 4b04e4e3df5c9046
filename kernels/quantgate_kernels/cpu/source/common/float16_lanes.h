// Sixteen float16 numbers to float32, side by side.
#pragma once

#include <cstdint>
#include <cstring>

#include "common/intrinsics.h"
#include "common/lanes.h"
#include "common/number.h"

namespace quantgate {

QUANTGATE_INLINED Lanes load(const Float16* from) {
#if QUANTGATE_AVX512
    return (Lanes)_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
#else
    float wide[LANES];
#pragma omp simd simdlen(16)
    for (int64_t lane = 0; lane < LANES; ++lane) wide[lane] = to_float(from[lane]);
    return load(wide);
#endif
}

}  // namespace quantgate
