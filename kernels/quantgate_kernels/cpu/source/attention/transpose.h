// Sixteen rows of sixteen 32-bit units, written as sixteen columns.
#pragma once

#include <cstdint>

#include "common/intrinsics.h"
#include "common/lanes.h"

namespace quantgate {

#if QUANTGATE_AVX512

template <class Unit>
inline void transpose(const Unit* from, int64_t from_row, Unit* to, int64_t to_row) {
    static_assert(sizeof(Unit) == 4, "a lane holds 32 bits");
    __m512 rows[LANES], pairs[LANES];
#pragma GCC unroll 16
    for (int i = 0; i < LANES; ++i) rows[i] = _mm512_loadu_ps(from + i * from_row);
#pragma GCC unroll 8
    for (int i = 0; i < LANES; i += 2) {
        pairs[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
    }
    // rows[4b + c] then holds column 4j + c of rows 4b..4b + 3 in its quarter j.
#pragma GCC unroll 4
    for (int b = 0; b < LANES; b += 4) {
        for (int half = 0; half < 2; ++half) {
            const __m512d even = _mm512_castps_pd(pairs[b + half]), odd = _mm512_castps_pd(pairs[b + half + 2]);
            rows[b + 2 * half] = _mm512_castpd_ps(_mm512_unpacklo_pd(even, odd));
            rows[b + 2 * half + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(even, odd));
        }
    }
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
        const __m512 upper_even = _mm512_shuffle_f32x4(rows[c], rows[4 + c], 0x88);
        const __m512 upper_odd = _mm512_shuffle_f32x4(rows[c], rows[4 + c], 0xdd);
        const __m512 lower_even = _mm512_shuffle_f32x4(rows[8 + c], rows[12 + c], 0x88);
        const __m512 lower_odd = _mm512_shuffle_f32x4(rows[8 + c], rows[12 + c], 0xdd);
        _mm512_storeu_ps(to + c * to_row, _mm512_shuffle_f32x4(upper_even, lower_even, 0x88));
        _mm512_storeu_ps(to + (4 + c) * to_row, _mm512_shuffle_f32x4(upper_odd, lower_odd, 0x88));
        _mm512_storeu_ps(to + (8 + c) * to_row, _mm512_shuffle_f32x4(upper_even, lower_even, 0xdd));
        _mm512_storeu_ps(to + (12 + c) * to_row, _mm512_shuffle_f32x4(upper_odd, lower_odd, 0xdd));
    }
}

#else

template <class Unit>
inline void transpose(const Unit* from, int64_t from_row, Unit* to, int64_t to_row) {
    static_assert(sizeof(Unit) == 4, "a lane holds 32 bits");
    for (int64_t i = 0; i < LANES; ++i) {
        for (int64_t j = 0; j < LANES; ++j) to[j * to_row + i] = from[i * from_row + j];
    }
}

#endif

}  // namespace quantgate
