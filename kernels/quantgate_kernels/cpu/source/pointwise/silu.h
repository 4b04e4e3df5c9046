// silu(g) = g / (1 + e^-g), for 16 gates and the ups that they open.
#pragma once

#include "common/exponential.h"
#include "common/intrinsics.h"
#include "common/lanes.h"

namespace quantgate {

QUANTGATE_INLINED Lanes silu_and_mul(const Lanes& gates, const Lanes& ups) {
    float gate[LANES], opened[LANES];
    store(gates, gate);
#pragma omp simd simdlen(16)
    for (int64_t lane = 0; lane < LANES; ++lane) opened[lane] = gate[lane] / (1.0f + exponential(-gate[lane]));
    return load(opened) * ups;
}

}  // namespace quantgate
