// Attention to many bfloat16 queries by the dot products of AVX-512 BF16: a unit is a pair of bfloat16 numbers, and
// sums are float32.
//
// What is rounded beside the sums: weights, to bfloat16 (by 2^-8 of themselves at most), because that is what the
// instruction multiplies. Without scales of values, the weights are divided by the sum of the rounded ones, so that
// equal values stay what they are; with scales, a weight is rounded after its multiplication, and the sum is of
// unrounded ones. The instruction takes subnormal numbers for zeros.
#pragma once

#include <cstdint>
#include <limits>

#include "attention/lane_arithmetic.h"
#include "common/intrinsics.h"

namespace quantgate {

template <class Number>
struct ArithmeticOf {
    using Type = LaneArithmetic;
};

#if QUANTGATE_AVX512_BF16

struct DotArithmetic {
    using Unit = uint32_t;
    static constexpr int64_t NUMBERS = 2, WIDTH = LANES, ROWS = 8, GROUP = 3, TOKENS = 64;
    // Weights are 2^score.
    static constexpr float SCORE_SCALE = 1.44269504f;
    using Vector = __m512i;
    using Sums = Lanes;

    static Vector load(const Unit* from) { return _mm512_loadu_si512(from); }
    static Vector broadcast(Unit pair) { return _mm512_set1_epi32(static_cast<int>(pair)); }
    static Sums multiply_add(Vector factor, Vector pairs, Sums sums) {
        return _mm512_dpbf16_ps(sums, (__m512bh)factor, (__m512bh)pairs);
    }
    static Sums load_sums(const float* from) { return quantgate::load(from); }
    static void store_sums(const Sums& sums, float* to) { quantgate::store(sums, to); }

    // Whole vectors of 32 numbers: as pairs of neighbours in a key, and as one half of pairs in a value.
    static int64_t key_row(int64_t size) { return (size + 31) / 32 * LANES; }
    static int64_t value_row(int64_t size) { return (size + 31) / 32 * 32; }

    // Up to 32 numbers, and zeros in place of those that a row lacks.
    static Vector load_numbers(const BFloat16* from, int64_t count) {
        return _mm512_maskz_loadu_epi16(first_of_32(count), from);
    }
    // Codes have 8 bits at most, as many as bfloat16 holds exactly.
    static Vector load_numbers(const int8_t* from, int64_t count) {
        const __m256i codes = _mm256_maskz_loadu_epi8(first_of_32(count), from);
        const __m512 low = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_castsi256_si128(codes)));
        const __m512 high = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_extracti128_si256(codes, 1)));
        return (__m512i)_mm512_cvtne2ps_pbh(high, low);
    }

    // A row of `size` numbers as units, zeros up to the row's end; zeros alone for a row that is not there.
    template <class Stored>
    static void copy_row(const Stored* from, int64_t size, Unit* to) {
        for (int64_t d = 0; d < size; d += 32) {
            const Vector numbers = from == nullptr ? _mm512_setzero_si512() : load_numbers(from + d, size - d);
            _mm512_storeu_si512(to + d / 2, numbers);
        }
    }

    // The rows of tokens whose numbers share units.
    template <class Stored>
    static void join_rows(const Stored* const (&rows)[NUMBERS], int64_t size, Unit* to) {
        const Vector low = pair_places(32), high = _mm512_add_epi32(low, _mm512_set1_epi32(LANES * 0x10001));
        for (int64_t d = 0; d < size; d += 32) {
            const Vector none = _mm512_setzero_si512();
            const Vector even = rows[0] == nullptr ? none : load_numbers(rows[0] + d, size - d);
            const Vector odd = rows[1] == nullptr ? none : load_numbers(rows[1] + d, size - d);
            _mm512_storeu_si512(to + d, _mm512_permutex2var_epi16(even, low, odd));
            _mm512_storeu_si512(to + d + LANES, _mm512_permutex2var_epi16(even, high, odd));
        }
    }

    // As LaneArithmetic::weigh; weights: [tokens / 2][COUNT lanes] pairs.
    template <int64_t COUNT, bool SCALED>
    static void weigh(const float* scores, int64_t begin, int64_t end, const float* value_scales, float* maxima,
                      float* totals, float* factors, Unit* weights) {
        constexpr int64_t lanes = COUNT * LANES;
        __m512 largest[COUNT], shift[COUNT], sum[COUNT];
#pragma GCC unroll 4
        for (int64_t v = 0; v < COUNT; ++v) largest[v] = _mm512_loadu_ps(maxima + v * LANES);
        for (int64_t t = begin; t < end; ++t) {
#pragma GCC unroll 4
            for (int64_t v = 0; v < COUNT; ++v) {
                // Of a NaN and a number, the instruction takes the second: a NaN shows in its weight.
                largest[v] = _mm512_max_ps(_mm512_loadu_ps(scores + t * lanes + v * LANES), largest[v]);
            }
        }
#pragma GCC unroll 4
        for (int64_t v = 0; v < COUNT; ++v) {
            const __m512 nothing = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
            shift[v] = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(largest[v], nothing, _CMP_NEQ_OQ), largest[v]);
            const __m512 factor = factor_of(_mm512_sub_ps(_mm512_loadu_ps(maxima + v * LANES), shift[v]));
            _mm512_storeu_ps(factors + v * LANES, factor);
            _mm512_storeu_ps(maxima + v * LANES, largest[v]);
            sum[v] = _mm512_setzero_ps();
        }
        const Vector places = pair_places(LANES), ones = _mm512_set1_epi32(0x3f803f80);
        for (int64_t t = begin; t < end; t += 2) {
#pragma GCC unroll 4
            for (int64_t v = 0; v < COUNT; ++v) {
                const float* from = scores + t * lanes + v * LANES;
                __m512 even = weight_of(_mm512_sub_ps(_mm512_loadu_ps(from), shift[v]));
                __m512 odd = weight_of(_mm512_sub_ps(_mm512_loadu_ps(from + lanes), shift[v]));
                if constexpr (SCALED) {
                    sum[v] = _mm512_add_ps(sum[v], _mm512_add_ps(even, odd));
                    even = _mm512_mul_ps(even, _mm512_set1_ps(value_scales[t]));
                    odd = _mm512_mul_ps(odd, _mm512_set1_ps(value_scales[t + 1]));
                }
                const Vector rounded = (__m512i)_mm512_cvtne2ps_pbh(odd, even);
                const Vector pairs = _mm512_permutexvar_epi16(places, rounded);
                if constexpr (!SCALED) sum[v] = _mm512_dpbf16_ps(sum[v], (__m512bh)pairs, (__m512bh)ones);
                _mm512_storeu_si512(weights + t / 2 * lanes + v * LANES, pairs);
            }
        }
#pragma GCC unroll 4
        for (int64_t v = 0; v < COUNT; ++v) {
            const __m512 before = _mm512_loadu_ps(totals + v * LANES), factor = _mm512_loadu_ps(factors + v * LANES);
            _mm512_storeu_ps(totals + v * LANES, _mm512_fmadd_ps(before, factor, sum[v]));
        }
    }

    // 2^x for x <= 0 as weights need it: within 1.1e-4 of the result, a thirtieth of the rounding to bfloat16 that
    // follows. Chebyshev's series of 2^r, |r| <= 1/2, up to r^3. Below -150 it is zero; a NaN stays one.
    static __m512 weight_of(__m512 x) {
        x = _mm512_max_ps(_mm512_set1_ps(-200.0f), x);
        const __m512 n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        const __m512 r = _mm512_sub_ps(x, n);
        __m512 p = _mm512_fmadd_ps(r, _mm512_set1_ps(0.05592079f), _mm512_set1_ps(0.24263104f));
        p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.69312114f));
        p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.99992486f));
        return _mm512_scalef_ps(p, n);
    }

    // 2^x for x <= 0 as the sums need it, which are multiplied once for each tile of keys: within 2 units in the last
    // place, and exactly 1 for 0. The polynomial of Cephes' exp2f (S. Moshier).
    static __m512 factor_of(__m512 x) {
        x = _mm512_max_ps(_mm512_set1_ps(-200.0f), x);
        const __m512 n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        const __m512 r = _mm512_sub_ps(x, n);
        __m512 p = _mm512_fmadd_ps(r, _mm512_set1_ps(1.535336188e-4f), _mm512_set1_ps(1.339887440e-3f));
        p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(9.618437357e-3f));
        p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.550332471e-2f));
        p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(2.402264791e-1f));
        p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(6.931472028e-1f));
        p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
        return _mm512_scalef_ps(p, n);
    }

private:
    static __mmask32 first_of_32(int64_t count) { return count >= 32 ? ~__mmask32{0} : (__mmask32{1} << count) - 1; }

    // For permutations of 16-bit numbers: i and `distance` + i side by side, for i = 0..15.
    static Vector pair_places(int distance) {
        const Vector count = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        const Vector partners = _mm512_add_epi32(count, _mm512_set1_epi32(distance));
        return _mm512_or_si512(count, _mm512_slli_epi32(partners, 16));
    }
};

template <>
struct ArithmeticOf<BFloat16> {
    using Type = DotArithmetic;
};

#endif

}  // namespace quantgate
