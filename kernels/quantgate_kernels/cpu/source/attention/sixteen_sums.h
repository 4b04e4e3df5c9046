// Sixteen registers of sixteen 32-bit sums each, added up across lanes into one register of sixteen sums: together they
// take fifteen steps, where one register alone takes four.
#pragma once

#include <cstdint>

#include "common/intrinsics.h"

namespace quantgate {

#if QUANTGATE_AVX512

// Each step makes one register of two: lanes that have the bit DISTANCE in their number go on with the second's sums,
// the others with the first's. Every lane keeps its own, and adds what its register holds DISTANCE lanes away.
template <int DISTANCE>
QUANTGATE_INLINED __m512i kept_lanes(__m512i first, __m512i second) {
    constexpr __mmask16 of_second = DISTANCE == 8 ? 0xff00 : DISTANCE == 4 ? 0xf0f0 : DISTANCE == 2 ? 0xcccc : 0xaaaa;
    return _mm512_mask_blend_epi32(of_second, first, second);
}

template <int DISTANCE>
QUANTGATE_INLINED __m512i lanes_away(__m512i first, __m512i second) {
    if constexpr (DISTANCE == 8) {
        return _mm512_shuffle_i64x2(first, second, 0x4e);
    } else if constexpr (DISTANCE == 4) {
        const __m512i places = _mm512_setr_epi32(4, 5, 6, 7, 16, 17, 18, 19, 12, 13, 14, 15, 24, 25, 26, 27);
        return _mm512_permutex2var_epi32(first, places, second);
    } else if constexpr (DISTANCE == 2) {
        return _mm512_castpd_si512(_mm512_shuffle_pd(_mm512_castsi512_pd(first), _mm512_castsi512_pd(second), 0x55));
    } else {
        const __m512i places = _mm512_setr_epi32(1, 16, 3, 18, 5, 20, 7, 22, 9, 24, 11, 26, 13, 28, 15, 30);
        return _mm512_permutex2var_epi32(first, places, second);
    }
}

// sums_of(item, sums) gives item 0..15's registers, COUNT of them that have nothing to do with each other; lane i of
// the result is item i's sum. Half of all steps are the first ones, which take the cheapest shuffle.
template <class Sums, int64_t COUNT, int LEVEL = 4>
QUANTGATE_INLINED void add_sixteen(const Sums& sums_of, int64_t item, __m512i (&sums)[COUNT]) {
    if constexpr (LEVEL == 0) {
        sums_of(item, sums);
    } else {
        constexpr int distance = LEVEL == 1 ? 2 : LEVEL == 2 ? 8 : LEVEL == 3 ? 4 : 1;
        __m512i second[COUNT];
        add_sixteen<Sums, COUNT, LEVEL - 1>(sums_of, item, sums);
        add_sixteen<Sums, COUNT, LEVEL - 1>(sums_of, item + distance, second);
#pragma GCC unroll 4
        for (int64_t i = 0; i < COUNT; ++i) {
            sums[i] = Sums::add(kept_lanes<distance>(sums[i], second[i]), lanes_away<distance>(sums[i], second[i]));
        }
    }
}

#endif

}  // namespace quantgate
