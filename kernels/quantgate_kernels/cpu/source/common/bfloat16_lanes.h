// Sixteen bfloat16 numbers to float32 and back, side by side.
#pragma once

#include <cstdint>
#include <cstring>

#include "common/intrinsics.h"
#include "common/lanes.h"
#include "common/number.h"

namespace quantgate {

QUANTGATE_INLINED Lanes load(const BFloat16* from) {
#if QUANTGATE_AVX512
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    return (Lanes)_mm512_slli_epi32(wide, 16);
#else
    return floats_of_bits(bits_of(load_widened(reinterpret_cast<const uint16_t*>(from))) << 16);
#endif
}

// As `rounded` does it; but where the processor has an instruction for it, what is below float32's normal numbers
// becomes zero, as it does in the products that the processor makes of bfloat16.
QUANTGATE_INLINED void store(const Lanes& lanes, BFloat16* to) {
#if QUANTGATE_AVX512_BF16
    const __m256bh nearest = _mm512_cvtneps_pbh((__m512)lanes);
    std::memcpy(to, &nearest, sizeof nearest);
#else
    float wide[LANES];
    store(lanes, wide);
#pragma omp simd simdlen(16)
    for (int64_t lane = 0; lane < LANES; ++lane) to[lane] = rounded<BFloat16>(wide[lane]);
#endif
}

}  // namespace quantgate
