// The multiply-adds of a panel product: 16 outputs side by side take a few inputs at once. Each exists for the processor's
// own instructions, and in vector types for every other processor.
#pragma once

#include <cstdint>
#include <cstring>

#include "common/intrinsics.h"
#include "common/lanes.h"
#include "common/number.h"

namespace quantgate {

// Two neighbouring 16-bit inputs of a row, as one number.
QUANTGATE_INLINED uint32_t load_pair(const BFloat16* from) {
    uint32_t pair;
    std::memcpy(&pair, from, sizeof pair);
    return pair;
}

// sums[o] += weights[o][0] * inputs[0] + weights[o][1] * inputs[1]; weights: pairs of bfloat16, one for each output.
QUANTGATE_INLINED Lanes add_pairs(const Lanes& sums, const BitLanes& weights, uint32_t inputs) {
#if QUANTGATE_AVX512_BF16
    const __m512i same = _mm512_set1_epi32(static_cast<int>(inputs));
    return (Lanes)_mm512_dpbf16_ps((__m512)sums, (__m512bh)(__m512i)weights, (__m512bh)same);
#else
    const Lanes first_weights = floats_of_bits(weights << 16), second_weights = floats_of_bits(weights & 0xffff0000u);
    const float first_input = to_float(static_cast<BFloat16>(inputs & 0xffffu));
    const float second_input = to_float(static_cast<BFloat16>(inputs >> 16));
    return sums + first_weights * first_input + second_weights * second_input;
#endif
}

#if QUANTGATE_AVX2
// The four products of each of eight outputs. As pairs of 16 bits: the processor's sums of pairs of bytes stop at 32,767.
QUANTGATE_INLINED decltype(IntLanes::lower) quads(const decltype(BitLanes::lower)& weights, uint32_t inputs) {
    const auto codes = (__m256i)weights;
    const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(codes, 8), 8), odd = _mm256_srai_epi16(codes, 8);
    const __m256i even_inputs = _mm256_set1_epi32(static_cast<int>(inputs & 0x00ff00ffu));
    const __m256i odd_inputs = _mm256_set1_epi32(static_cast<int>(inputs >> 8 & 0x00ff00ffu));
    const __m256i pairs = _mm256_add_epi32(_mm256_madd_epi16(even, even_inputs), _mm256_madd_epi16(odd, odd_inputs));
    return (decltype(IntLanes::lower))pairs;
}
#endif

// sums[o] += the four products of the weights' signed bytes and the inputs' unsigned ones. Sums may wrap around on the way
// to a result that fits.
QUANTGATE_INLINED IntLanes add_quads(const IntLanes& sums, const BitLanes& weights, uint32_t inputs) {
#if QUANTGATE_AVX512_VNNI
    const __m512i same = _mm512_set1_epi32(static_cast<int>(inputs));
    return (IntLanes)_mm512_dpbusd_epi32((__m512i)sums, same, (__m512i)weights);
#elif QUANTGATE_AVX2
    return {sums.lower + quads(weights.lower, inputs), sums.upper + quads(weights.upper, inputs)};
#else
    BitLanes total = bits_of(sums);
    for (int byte = 0; byte < 4; ++byte) {
        const IntLanes codes = ints_of_bits(weights << (24 - 8 * byte)) >> 24;
        total += bits_of(codes) * (inputs >> (8 * byte) & 0xffu);
    }
    return ints_of_bits(total);
#endif
}

}  // namespace quantgate
