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

// Zeros of 16 outputs with INT8 codes, each where its output's two codes of a pair are: those of 8 outputs in a register.
struct PairZeros {
    IntLanes lower, upper;
};

QUANTGATE_INLINED PairZeros load_pair_zeros(const int8_t* zeros) {
    PairZeros pairs;
#if QUANTGATE_AVX512
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(zeros));
    pairs.lower = (IntLanes)_mm512_cvtepi8_epi32(_mm_unpacklo_epi8(bytes, bytes));
    pairs.upper = (IntLanes)_mm512_cvtepi8_epi32(_mm_unpackhi_epi8(bytes, bytes));
#else
    for (int64_t lane = 0; lane < LANES; ++lane) {
        pairs.lower[lane] = zeros[lane / 2];
        pairs.upper[lane] = zeros[LANES / 2 + lane / 2];
    }
#endif
    return pairs;
}

// 16 pairs of int8 codes, each less its output's zero, as pairs of bfloat16, which holds each of them exactly.
QUANTGATE_INLINED BitLanes pairs_of_codes(const int8_t* codes, const PairZeros& zeros) {
#if QUANTGATE_AVX512_BF16
    const __m512i first = _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
    const __m512i second = _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + LANES)));
    const auto lower = (__m512i)((IntLanes)first - zeros.lower), upper = (__m512i)((IntLanes)second - zeros.upper);
    return (BitLanes)(__m512i)_mm512_cvtne2ps_pbh(_mm512_cvtepi32_ps(upper), _mm512_cvtepi32_ps(lower));
#else
    int32_t off[2 * LANES];
    std::memcpy(off, &zeros, sizeof off);
    BitLanes pairs;
    for (int64_t output = 0; output < LANES; ++output) {
        const int64_t place = 2 * output;
        const float first = static_cast<float>(codes[place] - off[place]);
        const float second = static_cast<float>(codes[place + 1] - off[place + 1]);
        pairs[output] = static_cast<uint32_t>(rounded<BFloat16>(first)) |
                        static_cast<uint32_t>(rounded<BFloat16>(second)) << 16;
    }
    return pairs;
#endif
}

// The same of codes that stand for themselves.
QUANTGATE_INLINED BitLanes pairs_of_codes(const int8_t* codes) { return pairs_of_codes(codes, PairZeros{}); }

// bfloat16 of a whole number from -255 to 255.
constexpr BFloat16 whole_number(int number) {
    if (number == 0) return BFloat16{};
    int magnitude = number < 0 ? -number : number, exponent = 127 + 7;
    for (; magnitude < 128; magnitude *= 2) --exponent;
    return static_cast<BFloat16>((number < 0 ? 0x8000 : 0) | exponent << 7 | (magnitude & 0x7f));
}

// What the lowest five bits of a code's place in a register stand for.
struct NumberTable {
    BFloat16 of[32];
};

template <class NumberOf>
constexpr NumberTable number_table(NumberOf number_of) {
    NumberTable table{};
    for (int bits = 0; bits < 32; ++bits) table.of[bits] = whole_number(number_of(bits));
    return table;
}

// code - 8 for the codes 0..15; the bit above a code is its neighbour's, and makes no difference.
inline constexpr NumberTable NIBBLES = number_table([](int bits) { return (bits & 15) - 8; });
// A code less its zero, in two's complement.
inline constexpr NumberTable DIFFERENCES = number_table([](int bits) { return bits < 16 ? bits : bits - 32; });

// The numbers that a table has for the lower five bits of each 16-bit word.
QUANTGATE_INLINED BitLanes look_up(const BitLanes& words, const NumberTable& table, const BitLanes& loaded) {
#if QUANTGATE_AVX512
    (void)table;
    return (BitLanes)_mm512_permutexvar_epi16((__m512i)words, (__m512i)loaded);
#else
    (void)loaded;
    BitLanes pairs;
    for (int64_t output = 0; output < LANES; ++output) {
        pairs[output] = static_cast<uint32_t>(table.of[words[output] & 31u]) |
                        static_cast<uint32_t>(table.of[words[output] >> 16 & 31u]) << 16;
    }
    return pairs;
#endif
}

// The upper bits of each 16-bit word moved to its lower end; what comes from the neighbouring word has no meaning.
template <int BITS>
QUANTGATE_INLINED BitLanes shifted_words(const BitLanes& words) {
    if constexpr (BITS == 0) return words;
#if QUANTGATE_AVX512
    return (BitLanes)_mm512_srli_epi16((__m512i)words, BITS);
#else
    return words >> BITS;
#endif
}

// The `NUMBER`th nibble of each 16-bit word, as bfloat16 of code - 8. table: NIBBLES, loaded.
template <int NUMBER>
QUANTGATE_INLINED BitLanes pairs_of_nibbles(const BitLanes& words, const BitLanes& table) {
    return look_up(shifted_words<4 * NUMBER>(words), NIBBLES, table);
}

// Four codes of each output, each less its output's zero: bytes in two's complement.
struct NibbleDifferences {
    // Nibbles 0 and 2 of each word, then 1 and 3.
    BitLanes even, odd;
};

// Zeros of 16 outputs with INT4 codes, each in all four bytes of its output's place.
QUANTGATE_INLINED BitLanes load_nibble_zeros(const uint8_t* zeros) {
    BitLanes wide;
#if QUANTGATE_AVX512
    wide = (BitLanes)_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(zeros)));
#else
    for (int64_t output = 0; output < LANES; ++output) wide[output] = zeros[output];
#endif
    return wide * 0x01010101u;
}

// zeros: as `load_nibble_zeros` gives them.
QUANTGATE_INLINED NibbleDifferences nibbles_less_zeros(const BitLanes& words, const BitLanes& zeros) {
    typedef uint8_t ByteLanes __attribute__((vector_size(4 * LANES)));
    const auto off = (ByteLanes)zeros;
    return {(BitLanes)((ByteLanes)(words & 0x0f0f0f0fu) - off), (BitLanes)((ByteLanes)(words >> 4 & 0x0f0f0f0fu) - off)};
}

// As `pairs_of_nibbles`, of code - zero. table: DIFFERENCES, loaded.
template <int NUMBER>
QUANTGATE_INLINED BitLanes pairs_of_differences(const NibbleDifferences& bytes, const BitLanes& table) {
    const BitLanes& half = NUMBER % 2 == 0 ? bytes.even : bytes.odd;
    return look_up(shifted_words<NUMBER / 2 * 8>(half), DIFFERENCES, table);
}

}  // namespace quantgate
