// Attention to many queries in float32 throughout, on any processor: a unit is one number.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "common/exponential.h"
#include "common/intrinsics.h"
#include "common/lanes.h"
#include "common/number.h"

namespace quantgate {

struct LaneArithmetic {
    using Unit = float;
    static constexpr int64_t NUMBERS = 1, TOKENS = 32;
    // Weights are e^score.
    static constexpr float SCORE_SCALE = 1.0f;

    // One register wide, and as many sums as leave registers for what is multiplied: 32 of 64 bytes, 16 of 32, 32 of 16
    // on Arm, 16 of 16 elsewhere.
#if QUANTGATE_AVX512
    static constexpr int64_t WIDTH = 16, ROWS = 8, GROUP = 3;
#elif defined(__AVX__)
    static constexpr int64_t WIDTH = 8, ROWS = 4, GROUP = 1;
#elif defined(__aarch64__)
    static constexpr int64_t WIDTH = 4, ROWS = 4, GROUP = 1;
#else
    static constexpr int64_t WIDTH = 4, ROWS = 2, GROUP = 1;
#endif
    typedef float Vector __attribute__((vector_size(4 * WIDTH)));
    using Sums = Vector;

    static Vector load(const float* from) {
        Vector numbers;
        std::memcpy(&numbers, from, sizeof numbers);
        return numbers;
    }
    static float broadcast(float number) { return number; }
    static Vector multiply_add(float factor, const Vector& numbers, const Vector& sums) {
        return sums + factor * numbers;
    }
    static Sums load_sums(const float* from) { return load(from); }
    static void store_sums(const Sums& sums, float* to) { std::memcpy(to, &sums, sizeof sums); }

    static int64_t key_row(int64_t size) { return padded_to_lanes(size); }
    static int64_t value_row(int64_t size) { return padded_to_lanes(size); }

    // A row of `size` numbers as units, zeros up to the row's end; zeros alone for a row that is not there.
    template <class Stored>
    static void copy_row(const Stored* from, int64_t size, float* to) {
        const int64_t there = from == nullptr ? 0 : size;
#pragma omp simd simdlen(16)
        for (int64_t d = 0; d < there; ++d) to[d] = to_float(from[d]);
        std::fill(to + there, to + key_row(size), 0.0f);
    }

    // The rows of tokens whose numbers share units.
    template <class Stored>
    static void join_rows(const Stored* const (&rows)[NUMBERS], int64_t size, float* to) {
        copy_row(rows[0], size, to);
    }

    // e^x; what lies below the smallest normal number is zero, so that a hidden key has no weight at all.
    static float weight(float x) {
        const float power = exponential(x);
        return x < -87.3f ? 0.0f : power;
    }

    // Turns the scores of tokens begin..end into weights relative to the largest score of each lane so far, multiplied
    // by the scales of values where there are any; `factors` are for what was summed before. A lane that has seen no
    // key yet has a maximum of minus infinity.
    template <int64_t COUNT, bool SCALED>
    static void weigh(const float* scores, int64_t begin, int64_t end, const float* value_scales, float* maxima,
                      float* totals, float* factors, float* weights) {
        constexpr int64_t lanes = COUNT * LANES;
        constexpr float infinity = std::numeric_limits<float>::infinity();
        float largest[lanes], shift[lanes], sum[lanes];
        std::copy_n(maxima, lanes, largest);
        for (int64_t t = begin; t < end; ++t) {
            const float* row = scores + t * lanes;
#pragma omp simd simdlen(16)
            for (int64_t lane = 0; lane < lanes; ++lane) {
                largest[lane] = row[lane] > largest[lane] ? row[lane] : largest[lane];
            }
        }
#pragma omp simd simdlen(16)
        for (int64_t lane = 0; lane < lanes; ++lane) {
            shift[lane] = largest[lane] == -infinity ? 0.0f : largest[lane];
            factors[lane] = weight(maxima[lane] - shift[lane]);
            maxima[lane] = largest[lane];
            sum[lane] = 0.0f;
        }
        for (int64_t t = begin; t < end; ++t) {
            const float *row = scores + t * lanes, scale = SCALED ? value_scales[t] : 1.0f;
            float* to = weights + t * lanes;
#pragma omp simd simdlen(16)
            for (int64_t lane = 0; lane < lanes; ++lane) {
                const float own = weight(row[lane] - shift[lane]);
                sum[lane] += own;
                to[lane] = SCALED ? own * scale : own;
            }
        }
#pragma omp simd simdlen(16)
        for (int64_t lane = 0; lane < lanes; ++lane) totals[lane] = totals[lane] * factors[lane] + sum[lane];
    }
};

}  // namespace quantgate
