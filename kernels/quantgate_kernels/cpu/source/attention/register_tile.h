// The product that attention to many queries is made of: a tile of sums that stays in registers over the whole depth.
//
// An arithmetic (lane_arithmetic.h, dot_arithmetic.h) says how a 32-bit *unit* holds numbers and how units are
// multiplied:
//   Unit, NUMBERS            a unit, and how many consecutive numbers of a product's depth it holds
//   Vector, Sums, WIDTH      units and float32 sums side by side in one register, and how many
//   ROWS, GROUP              rows of a tile of sums, and the most columns that it has, in LANES
//   TOKENS                   keys that are scored between two rescalings of the sums
#pragma once

#include <cstdint>

#include "common/intrinsics.h"
#include "common/lanes.h"

namespace quantgate {

// sums[r][:] += left[r] . right over `depth` units. Neighbours in depth are `left_step` units apart in `left`, and
// neighbouring rows `left_row`; `right` is dense, its rows as wide as the tile.
// Inlined by force: a call would pass the sums through memory.
template <class Arithmetic, int64_t VECTORS>
QUANTGATE_INLINED void multiply_add(
    const typename Arithmetic::Unit* left, int64_t left_row, int64_t left_step, const typename Arithmetic::Unit* right,
    int64_t depth, typename Arithmetic::Sums (&sums)[Arithmetic::ROWS][VECTORS]) {
    for (int64_t k = 0; k < depth; ++k, left += left_step, right += VECTORS * Arithmetic::WIDTH) {
        typename Arithmetic::Vector columns[VECTORS];
#pragma GCC unroll 8
        for (int64_t v = 0; v < VECTORS; ++v) columns[v] = Arithmetic::load(right + v * Arithmetic::WIDTH);
#pragma GCC unroll 8
        for (int64_t r = 0; r < Arithmetic::ROWS; ++r) {
            const auto factor = Arithmetic::broadcast(left[r * left_row]);
#pragma GCC unroll 8
            for (int64_t v = 0; v < VECTORS; ++v) {
                sums[r][v] = Arithmetic::multiply_add(factor, columns[v], sums[r][v]);
            }
        }
    }
}

// scores[t][:] = multipliers[t] * (keys[t] . queries) for tokens begin..end, a multiple of ROWS. queries: [depth][COUNT
// lanes], scores: [TOKENS][COUNT lanes].
template <class Arithmetic, int64_t COUNT>
void score_keys(const typename Arithmetic::Unit* keys, int64_t key_row, const typename Arithmetic::Unit* queries,
                int64_t depth, const float* multipliers, int64_t begin, int64_t end, float* scores) {
    constexpr int64_t lanes = COUNT * LANES, vectors = lanes / Arithmetic::WIDTH;
    for (int64_t t = begin; t < end; t += Arithmetic::ROWS) {
        typename Arithmetic::Sums sums[Arithmetic::ROWS][vectors];
#pragma GCC unroll 8
        for (int64_t r = 0; r < Arithmetic::ROWS; ++r) {
#pragma GCC unroll 8
            for (int64_t v = 0; v < vectors; ++v) sums[r][v] = typename Arithmetic::Sums{};
        }
        multiply_add<Arithmetic, vectors>(keys + t * key_row, key_row, 1, queries, depth, sums);
#pragma GCC unroll 8
        for (int64_t r = 0; r < Arithmetic::ROWS; ++r) {
#pragma GCC unroll 8
            for (int64_t v = 0; v < vectors; ++v) {
                Arithmetic::store_sums(sums[r][v] * multipliers[t + r],
                                       scores + (t + r) * lanes + v * Arithmetic::WIDTH);
            }
        }
    }
}

// sums[d][:] = sums[d][:] * factors + values[:][d] . weights over `depth` units of tokens. values: [depth][value_row],
// weights: [depth][COUNT lanes], sums: [size][COUNT lanes], `size` being a multiple of ROWS.
template <class Arithmetic, int64_t COUNT>
void add_values(const typename Arithmetic::Unit* values, int64_t value_row, const typename Arithmetic::Unit* weights,
                int64_t depth, const float* factors, int64_t size, float* sums) {
    constexpr int64_t lanes = COUNT * LANES, vectors = lanes / Arithmetic::WIDTH;
    for (int64_t d = 0; d < size; d += Arithmetic::ROWS) {
        typename Arithmetic::Sums tile[Arithmetic::ROWS][vectors];
#pragma GCC unroll 8
        for (int64_t v = 0; v < vectors; ++v) {
            const auto factor = Arithmetic::load_sums(factors + v * Arithmetic::WIDTH);
#pragma GCC unroll 8
            for (int64_t r = 0; r < Arithmetic::ROWS; ++r) {
                tile[r][v] = Arithmetic::load_sums(sums + (d + r) * lanes + v * Arithmetic::WIDTH) * factor;
            }
        }
        multiply_add<Arithmetic, vectors>(values + d, 1, value_row, weights, depth, tile);
#pragma GCC unroll 8
        for (int64_t r = 0; r < Arithmetic::ROWS; ++r) {
#pragma GCC unroll 8
            for (int64_t v = 0; v < vectors; ++v) {
                Arithmetic::store_sums(tile[r][v], sums + (d + r) * lanes + v * Arithmetic::WIDTH);
            }
        }
    }
}

}  // namespace quantgate
