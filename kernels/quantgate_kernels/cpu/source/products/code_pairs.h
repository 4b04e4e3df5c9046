// Codes of 16 outputs as pairs of bfloat16, as products multiply them.
#pragma once

#include <cstdint>

#include "common/intrinsics.h"
#include "common/lanes.h"
#include "common/number.h"

namespace quantgate {

#if QUANTGATE_AVX512_BF16

// Zeros of 16 outputs with INT8 codes, each where its output's two codes of a pair are: those of 8 outputs in a register.
struct PairZeros {
    IntLanes lower, upper;
};

QUANTGATE_INLINED PairZeros load_pair_zeros(const int8_t* zeros) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(zeros));
    return {(IntLanes)_mm512_cvtepi8_epi32(_mm_unpacklo_epi8(bytes, bytes)),
            (IntLanes)_mm512_cvtepi8_epi32(_mm_unpackhi_epi8(bytes, bytes))};
}

// 16 pairs of int8 codes, each less its output's zero, as pairs of bfloat16, which holds each of them exactly.
QUANTGATE_INLINED BitLanes pairs_of_codes(const int8_t* codes, const PairZeros& zeros) {
    const __m512i first = _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
    const __m512i second = _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + LANES)));
    const auto lower = (__m512i)((IntLanes)first - zeros.lower), upper = (__m512i)((IntLanes)second - zeros.upper);
    return (BitLanes)(__m512i)_mm512_cvtne2ps_pbh(_mm512_cvtepi32_ps(upper), _mm512_cvtepi32_ps(lower));
}

#else

// Zeros of 16 outputs with INT8 codes.
using PairZeros = IntLanes;

QUANTGATE_INLINED PairZeros load_pair_zeros(const int8_t* zeros) { return load_widened(zeros); }

// Two whole numbers of each output, which bfloat16 holds exactly: in the upper halves of their float32.
QUANTGATE_INLINED BitLanes pairs_of_numbers(const IntLanes& first, const IntLanes& second) {
    return bits_of(to_float(first)) >> 16 | (bits_of(to_float(second)) & 0xffff0000u);
}

// 16 pairs of int8 codes, each less its output's zero, as pairs of bfloat16.
QUANTGATE_INLINED BitLanes pairs_of_codes(const int8_t* codes, const PairZeros& zeros) {
    // A pair as a number of 16 bits: its second code, and its first one below.
    int16_t pairs[LANES];
    std::memcpy(pairs, codes, sizeof pairs);
    const IntLanes both = load_widened(pairs);
    return pairs_of_numbers((both << 24 >> 24) - zeros, (both >> 8) - zeros);
}

#endif

// The same of codes that stand for themselves.
QUANTGATE_INLINED BitLanes pairs_of_codes(const int8_t* codes) { return pairs_of_codes(codes, PairZeros{}); }

}  // namespace quantgate
