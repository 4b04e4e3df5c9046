// silu(g) = g / (1 + e^-g), for 16 gates and the ups that they open.
#pragma once

#include "common/exponential.h"
#include "common/intrinsics.h"
#include "common/lanes.h"

namespace quantgate {

QUANTGATE_INLINED Lanes silu_and_mul(const Lanes& gates, const Lanes& ups) {
    float gate[LANES], power[LANES];
    store(gates, gate);
    // The division stands behind the loop: in it, compilers make one for each of the exponential's cases.
#pragma omp simd simdlen(16)
    for (int64_t lane = 0; lane < LANES; ++lane) power[lane] = exponential(-gate[lane]);
    return gates / (1.0f + load(power)) * ups;
}

}  // namespace quantgate
