// The multiply-adds of a panel product: 16 outputs side by side, whose sums are one register, take a few inputs at once.
// Each exists for the processor's own instructions, and in vector types for every other processor.
#pragma once

#include <cstdint>
#include <cstring>

#include "common/intrinsics.h"
#include "common/lanes.h"
#include "common/number.h"

namespace quantgate {

typedef int32_t IntLanes __attribute__((vector_size(4 * LANES)));
typedef uint32_t BitLanes __attribute__((vector_size(4 * LANES)));

QUANTGATE_INLINED BitLanes load_bits(const void* from) {
    BitLanes lanes;
    std::memcpy(&lanes, from, sizeof lanes);
    return lanes;
}

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
    const BitLanes first = weights << 16, second = weights & 0xffff0000u;
    Lanes first_weights, second_weights;
    std::memcpy(&first_weights, &first, sizeof first);
    std::memcpy(&second_weights, &second, sizeof second);
    const float first_input = to_float(static_cast<BFloat16>(inputs & 0xffffu));
    const float second_input = to_float(static_cast<BFloat16>(inputs >> 16));
    return sums + first_weights * first_input + second_weights * second_input;
#endif
}

// sums[o] += the four products of the weights' signed bytes and the inputs' unsigned ones. Sums may wrap around on the way
// to a result that fits.
QUANTGATE_INLINED IntLanes add_quads(const IntLanes& sums, const BitLanes& weights, uint32_t inputs) {
#if QUANTGATE_AVX512_VNNI
    const __m512i same = _mm512_set1_epi32(static_cast<int>(inputs));
    return (IntLanes)_mm512_dpbusd_epi32((__m512i)sums, same, (__m512i)weights);
#else
    BitLanes total = (BitLanes)sums;
    for (int byte = 0; byte < 4; ++byte) {
        const IntLanes codes = (IntLanes)(weights << (24 - 8 * byte)) >> 24;
        total += (BitLanes)codes * (inputs >> (8 * byte) & 0xffu);
    }
    return (IntLanes)total;
#endif
}

// 16 pairs of int8 codes as pairs of bfloat16, which holds each of them exactly.
QUANTGATE_INLINED BitLanes pairs_of_codes(const int8_t* codes) {
#if QUANTGATE_AVX512_BF16
    const __m512i first = _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
    const __m512i second = _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + LANES)));
    return (BitLanes)(__m512i)_mm512_cvtne2ps_pbh(_mm512_cvtepi32_ps(second), _mm512_cvtepi32_ps(first));
#else
    BitLanes pairs;
    for (int64_t output = 0; output < LANES; ++output) {
        const uint32_t first = static_cast<uint32_t>(rounded<BFloat16>(to_float(codes[2 * output])));
        const uint32_t second = static_cast<uint32_t>(rounded<BFloat16>(to_float(codes[2 * output + 1])));
        pairs[output] = first | second << 16;
    }
    return pairs;
#endif
}

// bfloat16 of code - 8 for the codes 0..15, twice: the lookup then ignores a code's neighbour bit.
struct NibbleTable {
    BFloat16 steps[32];

    constexpr NibbleTable() : steps() {
        // Magnitudes 0..8: sign, exponent and two bits of mantissa.
        constexpr uint16_t magnitudes[9] = {0x0000, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0, 0x4100};
        for (int code = 0; code < 32; ++code) {
            const int step = (code & 15) - 8;
            steps[code] = static_cast<BFloat16>(step < 0 ? magnitudes[-step] | 0x8000 : magnitudes[step]);
        }
    }
};

inline constexpr NibbleTable NIBBLES;

// The `NUMBER`th nibble of each 16-bit word, as bfloat16 of code - 8.
template <int NUMBER>
QUANTGATE_INLINED BitLanes pairs_of_nibbles(const BitLanes& words, const BitLanes& table) {
#if QUANTGATE_AVX512
    const __m512i shifted = NUMBER == 0 ? (__m512i)words : _mm512_srli_epi16((__m512i)words, 4 * NUMBER);
    return (BitLanes)_mm512_permutexvar_epi16(shifted, (__m512i)table);
#else
    (void)table;
    BitLanes pairs;
    for (int64_t output = 0; output < LANES; ++output) {
        const uint32_t shifted = words[output] >> (4 * NUMBER);
        pairs[output] = static_cast<uint32_t>(NIBBLES.steps[shifted & 15u]) |
                        static_cast<uint32_t>(NIBBLES.steps[shifted >> 16 & 15u]) << 16;
    }
    return pairs;
#endif
}

}  // namespace quantgate
