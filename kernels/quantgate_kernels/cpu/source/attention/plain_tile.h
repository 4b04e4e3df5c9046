// A tile of consecutive tokens in the online softmax of decode_sequence.h, in float32 throughout and on any processor:
// keys scored, scores turned into weights, weighted values added up.
#pragma once

#include <algorithm>
#include <cstdint>

#include "attention/aligned_array.h"
#include "attention/attention_tile.h"
#include "attention/decode_sums.h"
#include "common/exponential.h"
#include "common/lanes.h"
#include "common/number.h"

namespace quantgate {

// The width of a head in lanes, where it is known when compiling: sums then stay in registers. 0 takes the shape's.
constexpr int64_t ANY_WIDTH = 0;

// Rows of queries and tile are padded with zeros to whole lanes. `scales` are those of the rows in `tile`.
struct PlainScratch {
    int64_t row;
    AlignedArray<float> queries, tile, scales, scores;

    explicit PlainScratch(const AttentionShape& shape)
        : row(padded_to_lanes(shape.head_dim)), queries(shape.heads * row), tile(TILE * row), scales(TILE),
          scores(shape.group() * TILE) {}
};

// Codes come as they are, beside their scales.
template <class Stored>
void load_tile(const CachedRows<Stored>& cache, const int64_t* slots, int64_t tokens, int64_t kv_head,
               const AttentionShape& shape, PlainScratch& scratch) {
    for (int64_t t = 0; t < tokens; ++t) {
        const int64_t place = slots[t] * shape.kv_heads + kv_head;
        const Stored* from = cache.numbers + place * shape.head_dim;
        float* to = scratch.tile.data() + t * scratch.row;
#pragma omp simd simdlen(16)
        for (int64_t d = 0; d < shape.head_dim; ++d) to[d] = to_float(from[d]);
        if constexpr (CachedRows<Stored>::SCALED) scratch.scales.data()[t] = cache.scales[place];
    }
}

// Scores of one query head with the tile's keys.
template <int64_t WIDTH>
void score(const float* query, const float* tile, int64_t tokens, int64_t width, float* scores) {
    if (WIDTH != ANY_WIDTH) width = WIDTH;
    for (int64_t t = 0; t < tokens; ++t, tile += width * LANES) {
        Lanes products = load(query) * load(tile);
        for (int64_t w = 1; w < width; ++w) products += load(query + w * LANES) * load(tile + w * LANES);
        scores[t] = sum_of(products);
    }
}

// A row's scale is a factor of its whole score, and of its weight: one product in place of `head_dim`.
inline void apply_scales(const float* scales, int64_t tokens, float* scores) {
#pragma omp simd simdlen(16)
    for (int64_t t = 0; t < tokens; ++t) scores[t] *= scales[t];
}

// Turns scores into weights relative to the largest score so far; returns the factor for what was summed before.
inline float weigh(float* scores, int64_t tokens, float& maximum, float& total) {
    float largest = maximum;
#pragma omp simd simdlen(16) reduction(max : largest)
    for (int64_t t = 0; t < tokens; ++t) largest = scores[t] > largest ? scores[t] : largest;
    float sum = 0.0f;
#pragma omp simd simdlen(16) reduction(+ : sum)
    for (int64_t t = 0; t < tokens; ++t) {
        scores[t] = exponential(scores[t] - largest);
        sum += scores[t];
    }
    const float factor = exponential(maximum - largest);
    maximum = largest;
    total = total * factor + sum;
    return factor;
}

// sums = sums * factor + weights . tile, for COUNT lanes side by side.
template <int64_t COUNT>
void add_weighted_lanes(const float* weights, const float* tile, int64_t tokens, int64_t row, float factor,
                        float* sums) {
    Lanes sum[COUNT];
    for (int64_t w = 0; w < COUNT; ++w) sum[w] = load(sums + w * LANES) * factor;
    for (int64_t t = 0; t < tokens; ++t, tile += row) {
        for (int64_t w = 0; w < COUNT; ++w) sum[w] += weights[t] * load(tile + w * LANES);
    }
    for (int64_t w = 0; w < COUNT; ++w) store(sum[w], sums + w * LANES);
}

template <int64_t WIDTH>
void add_weighted(const float* weights, const float* tile, int64_t tokens, int64_t width, float factor, float* sums) {
    if (WIDTH != ANY_WIDTH) return add_weighted_lanes<WIDTH>(weights, tile, tokens, WIDTH * LANES, factor, sums);
    for (int64_t w = 0; w < width; ++w) {
        add_weighted_lanes<1>(weights, tile + w * LANES, tokens, width * LANES, factor, sums + w * LANES);
    }
}

// Weights are e^score.
template <class Number, class Stored, int64_t WIDTH>
struct PlainTiles {
    using Scratch = PlainScratch;

    static float power(float difference) { return exponential(difference); }

    static void load_query(const Number* query, int64_t head, const AttentionShape& shape, Scratch& scratch) {
        float* to = scratch.queries.data() + head * scratch.row;
        for (int64_t d = 0; d < shape.head_dim; ++d) to[d] = to_float(query[d]) * shape.scale;
    }

    // Adds the tile's tokens to the sums of all heads.
    static void attend(const CachedRows<Stored>& keys, const CachedRows<Stored>& values, const TileSlots& slots,
                       const TileSlots& next, const AttentionShape& shape, Scratch& scratch, const DecodeSums& sums) {
        const HeadRange kv_heads{0, shape.kv_heads};
        prefetch_tile(keys, next.of, next.tokens, kv_heads, shape);
        prefetch_tile(values, next.of, next.tokens, kv_heads, shape);
        for (int64_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
            attend_head(keys, values, slots.of, slots.tokens, kv_head, shape, scratch, sums);
        }
    }

private:
    static void attend_head(const CachedRows<Stored>& keys, const CachedRows<Stored>& values, const int64_t* slots,
                            int64_t tokens, int64_t kv_head, const AttentionShape& shape, Scratch& scratch,
                            const DecodeSums& sums) {
        constexpr bool scaled = CachedRows<Stored>::SCALED;
        const int64_t row = scratch.row, width = row / LANES, group = shape.group(), first_head = kv_head * group;
        const float *tile = scratch.tile.data(), *scales = scratch.scales.data();
        load_tile(keys, slots, tokens, kv_head, shape, scratch);
        for (int64_t g = 0; g < group; ++g) {
            float* scores = scratch.scores.data() + g * TILE;
            score<WIDTH>(scratch.queries.data() + (first_head + g) * row, tile, tokens, width, scores);
            if constexpr (scaled) apply_scales(scales, tokens, scores);
        }
        load_tile(values, slots, tokens, kv_head, shape, scratch);
        for (int64_t g = 0; g < group; ++g) {
            const int64_t head = first_head + g;
            float* weights = scratch.scores.data() + g * TILE;
            const float factor = weigh(weights, tokens, sums.maxima[head], sums.totals[head]);
            if constexpr (scaled) apply_scales(scales, tokens, weights);
            add_weighted<WIDTH>(weights, tile, tokens, width, factor, sums.sums + head * row);
        }
    }
};

}  // namespace quantgate
