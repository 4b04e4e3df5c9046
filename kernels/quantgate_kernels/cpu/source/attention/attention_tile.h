// A tile of consecutive tokens of one key head in the online softmax of decode_sequence.h: keys scored, scores
// turned into weights, weighted values added up.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "common/exponential.h"
#include "common/lanes.h"
#include "common/number.h"

namespace quantgate {

// Tokens between two rescalings of the sums; a tile of keys in float32 stays in the first-level cache.
constexpr int64_t TILE = 32;

struct AttentionShape {
    int64_t heads, kv_heads, head_dim, block_size, max_blocks, window;
    float scale;

    int64_t group() const { return heads / kv_heads; }

    // A window of 0 hides nothing.
    int64_t first_seen(int64_t context) const { return window > 0 && window < context ? context - window : 0; }
};

// Keys or values of a layer's paged cache: `head_dim` numbers for each slot and key head. int8 rows hold codes, and
// each has its scale: number = code * scale. Rows in an activation type have none.
template <class Stored>
struct CachedRows {
    static constexpr bool SCALED = std::is_same_v<Stored, int8_t>;

    const Stored* numbers;
    const float* scales;
};

// The width of a head in lanes, where it is known when compiling: sums then stay in registers. 0 takes the shape's.
constexpr int64_t ANY_WIDTH = 0;

// The key heads that one task takes.
struct HeadRange {
    int64_t begin, end;
};

// Rows of queries, sums and tile are padded with zeros to whole lanes. `scales` are those of the rows in `tile`.
struct AttentionScratch {
    int64_t row;
    std::vector<float> queries, sums, tile, scales, scores, maxima, totals;

    explicit AttentionScratch(const AttentionShape& shape)
        : row(padded_to_lanes(shape.head_dim)), queries(shape.heads * row), sums(queries.size()), tile(TILE * row),
          scales(TILE), scores(shape.group() * TILE), maxima(shape.heads), totals(shape.heads) {}
};

// The cache slots of `tokens` positions from `first` on.
inline void find_slots(const int32_t* table, int64_t first, int64_t tokens, int64_t block_size, int64_t* slots) {
    int64_t block = first / block_size, offset = first % block_size;
    for (int64_t t = 0; t < tokens; ++t) {
        slots[t] = int64_t{table[block]} * block_size + offset;
        if (++offset == block_size) ++block, offset = 0;
    }
}

// Codes come as they are, beside their scales.
template <class Stored>
void load_tile(const CachedRows<Stored>& cache, const int64_t* slots, int64_t tokens, int64_t kv_head,
               const AttentionShape& shape, AttentionScratch& scratch) {
    for (int64_t t = 0; t < tokens; ++t) {
        const int64_t place = slots[t] * shape.kv_heads + kv_head;
        const Stored* from = cache.numbers + place * shape.head_dim;
        float* to = &scratch.tile[t * scratch.row];
#pragma omp simd simdlen(16)
        for (int64_t d = 0; d < shape.head_dim; ++d) to[d] = to_float(from[d]);
        if constexpr (CachedRows<Stored>::SCALED) scratch.scales[t] = cache.scales[place];
    }
}

// Asks for rows that are read a tile later: between two steps the weights have swept the caches, and the processor does
// not foresee where the next block stands.
template <class Stored>
void prefetch_tile(const CachedRows<Stored>& cache, const int64_t* slots, int64_t tokens, HeadRange kv_heads,
                   const AttentionShape& shape) {
    constexpr int64_t line = 64 / sizeof(Stored);
    const int64_t numbers = (kv_heads.end - kv_heads.begin) * shape.head_dim;
    for (int64_t t = 0; t < tokens; ++t) {
        const int64_t place = slots[t] * shape.kv_heads + kv_heads.begin;
        const Stored* row = cache.numbers + place * shape.head_dim;
        for (int64_t d = 0; d < numbers; d += line) __builtin_prefetch(row + d);
        if constexpr (CachedRows<Stored>::SCALED) __builtin_prefetch(cache.scales + place);
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

// One tile of one key head: scores, weights, and the weighted values added to the sums of its query heads.
template <class Stored, int64_t WIDTH>
void attend_tile(const CachedRows<Stored>& keys, const CachedRows<Stored>& values, const int64_t* slots,
                 int64_t tokens, int64_t kv_head, const AttentionShape& shape, AttentionScratch& scratch) {
    constexpr bool scaled = CachedRows<Stored>::SCALED;
    const int64_t row = scratch.row, width = row / LANES, group = shape.group(), first_head = kv_head * group;
    const float* tile = scratch.tile.data();
    load_tile(keys, slots, tokens, kv_head, shape, scratch);
    for (int64_t g = 0; g < group; ++g) {
        float* scores = &scratch.scores[g * TILE];
        score<WIDTH>(&scratch.queries[(first_head + g) * row], tile, tokens, width, scores);
        if constexpr (scaled) apply_scales(scratch.scales.data(), tokens, scores);
    }
    load_tile(values, slots, tokens, kv_head, shape, scratch);
    for (int64_t g = 0; g < group; ++g) {
        const int64_t head = first_head + g;
        float* weights = &scratch.scores[g * TILE];
        const float factor = weigh(weights, tokens, scratch.maxima[head], scratch.totals[head]);
        if constexpr (scaled) apply_scales(scratch.scales.data(), tokens, weights);
        add_weighted<WIDTH>(weights, tile, tokens, width, factor, &scratch.sums[head * row]);
    }
}

}  // namespace quantgate
