// A tile of consecutive tokens in the online softmax of decode_sequence.h for bfloat16 queries, with AVX-512: keys and
// values are read where the cache holds them, and each is loaded once for the query heads that share it.
// Keys are multiplied as key_dots.h says; weights and sums are float32, and values are widened in registers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "attention/aligned_array.h"
#include "attention/attention_tile.h"
#include "attention/decode_sums.h"
#include "attention/dot_arithmetic.h"
#include "attention/key_dots.h"
#include "attention/sixteen_sums.h"

namespace quantgate {

#if QUANTGATE_DOT_TILES

struct DotScratch {
    // Of the widest query.
    static constexpr int64_t QUERY_BYTES = sizeof(DotQuery<int8_t, 8>);

    AlignedArray<uint8_t> queries;
    // Scores, then weights: [heads][TILE]; the scales of the tile's rows: [kv_heads][TILE].
    AlignedArray<float> scores, factors, key_scales, value_scales;

    explicit DotScratch(const AttentionShape& shape)
        : queries(shape.heads * QUERY_BYTES), scores(shape.heads * TILE), factors(shape.heads),
          key_scales(shape.kv_heads * TILE), value_scales(shape.kv_heads * TILE) {}
};

// Weights are 2^score.
template <class Stored, int64_t WIDTH>
class DotTiles {
public:
    using Scratch = DotScratch;

    static float power(float difference) {
        return _mm512_cvtss_f32(DotArithmetic::factor_of(_mm512_set1_ps(difference)));
    }

    static void load_query(const BFloat16* query, int64_t head, const AttentionShape&, Scratch& scratch) {
        queries(scratch)[head] = Query::of(query);
    }

    // Adds the tile's tokens to the sums of all heads. Heads go through each stage together, so that one's arithmetic
    // fills the time that another waits; rows of the next tile are asked for one by one, so that memory is never idle.
    static void attend(const CachedRows<Stored>& keys, const CachedRows<Stored>& values, const TileSlots& slots,
                       const TileSlots& next, const AttentionShape& shape, Scratch& scratch, const DecodeSums& sums) {
        const int64_t group = shape.group(), tokens = slots.tokens;
        const Places places(slots, shape.kv_heads), following(next.tokens > 0 ? next : slots, shape.kv_heads);
        if constexpr (SCALED) {
            load_scales(keys.scales, places, following, shape.kv_heads, scratch.key_scales.data());
            load_scales(values.scales, places, following, shape.kv_heads, scratch.value_scales.data());
        }
        const float scale = shape.scale * DotArithmetic::SCORE_SCALE;
        for (int64_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
            in_shares(group, [&](auto count, int64_t first) {
                score<count>(keys.numbers, places, following, tokens, kv_head, kv_head * group + first, scale, scratch);
            });
        }
        for (int64_t head = 0; head < shape.heads; ++head) {
            weigh(scratch.scores.data() + head * TILE, scratch.value_scales.data() + head / group * TILE,
                  sums.maxima[head], sums.totals[head], scratch.factors.data()[head]);
        }
        for (int64_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
            in_shares(group, [&](auto count, int64_t first) {
                add_values<count>(values.numbers, places, following, tokens, kv_head, kv_head * group + first, scratch,
                                  sums);
            });
        }
    }

private:
    using Query = DotQuery<Stored, WIDTH>;
    static_assert(sizeof(Query) <= Scratch::QUERY_BYTES, "queries fit");
    static constexpr bool SCALED = CachedRows<Stored>::SCALED;
    static constexpr int64_t SIZE = WIDTH * LANES;

    // Where the rows of a tile's tokens are, in key heads. Tokens that fill the tile are read from the last one's rows.
    struct Places {
        int64_t of[TILE];

        Places(const TileSlots& slots, int64_t kv_heads) {
            for (int64_t t = 0; t < TILE; ++t) of[t] = slots.of[std::min(t, slots.tokens - 1)] * kv_heads;
        }
    };

    QUANTGATE_INLINED static void prefetch(const Stored* row) {
#pragma GCC unroll 4
        for (int64_t d = 0; d < SIZE; d += 64 / sizeof(Stored)) __builtin_prefetch(row + d);
    }

    // A tile's sums of three heads and what they are made of fill the registers.
    template <class Body>
    static void in_shares(int64_t group, const Body& body) {
        int64_t first = 0;
        for (; first + 3 <= group; first += 3) body(std::integral_constant<int64_t, 3>{}, first);
        if (group - first == 2) body(std::integral_constant<int64_t, 2>{}, first);
        if (group - first == 1) body(std::integral_constant<int64_t, 1>{}, first);
    }

    static Query* queries(const Scratch& scratch) { return reinterpret_cast<Query*>(scratch.queries.data()); }

    static void load_scales(const float* scales, const Places& places, const Places& following, int64_t kv_heads,
                            float* to) {
        for (int64_t t = 0; t < TILE; ++t) __builtin_prefetch(scales + following.of[t]);
        for (int64_t kv_head = 0; kv_head < kv_heads; ++kv_head) {
            for (int64_t t = 0; t < TILE; ++t) to[kv_head * TILE + t] = scales[places.of[t] + kv_head];
        }
    }

    // The products of COUNT queries with one key.
    template <int64_t COUNT>
    struct KeySums {
        const Query (&own)[COUNT];
        const Stored* keys;
        const Places &places, &following;

        QUANTGATE_INLINED void operator()(int64_t token, __m512i (&sums)[COUNT]) const {
            const typename Query::Key key(keys + places.of[token] * SIZE);
            prefetch(keys + following.of[token] * SIZE);
#pragma GCC unroll 4
            for (int64_t g = 0; g < COUNT; ++g) sums[g] = own[g].multiply(key);
        }

        QUANTGATE_INLINED static __m512i add(__m512i a, __m512i b) { return Query::add(a, b); }
    };

    template <int64_t COUNT>
    static void score(const Stored* keys, const Places& places, const Places& following, int64_t tokens,
                      int64_t kv_head, int64_t first_head, float scale, Scratch& scratch) {
        Query own[COUNT];
#pragma GCC unroll 4
        for (int64_t g = 0; g < COUNT; ++g) own[g] = queries(scratch)[first_head + g];
        const KeySums<COUNT> sums_of{own, keys + kv_head * SIZE, places, following};
        const __m512 nothing = _mm512_set1_ps(-std::numeric_limits<float>::infinity());
        for (int64_t t = 0; t < TILE; t += LANES) {
            float* scores = scratch.scores.data() + first_head * TILE + t;
            const int64_t there = std::clamp<int64_t>(tokens - t, 0, LANES);
            __m512i sums[COUNT];
            if (there > 0) add_sixteen(sums_of, t, sums);
            __m512 factors = _mm512_set1_ps(scale);
            if constexpr (SCALED) {
                factors = _mm512_mul_ps(factors, _mm512_loadu_ps(scratch.key_scales.data() + kv_head * TILE + t));
            }
#pragma GCC unroll 4
            for (int64_t g = 0; g < COUNT; ++g) {
                const __mmask16 seen = static_cast<__mmask16>((1u << there) - 1);
                const __m512 products = there > 0 ? own[g].products(sums[g]) : nothing;
                _mm512_storeu_ps(scores + g * TILE, _mm512_mask_mul_ps(nothing, seen, products, factors));
            }
        }
    }

    // Turns scores into weights relative to the largest so far, and those into what values are multiplied by; `factor`
    // is for what was summed before. Of a NaN and a number, the maximum is the second: a NaN shows in its weight.
    static void weigh(float* scores, const float* value_scales, float& maximum, float& total, float& factor) {
        __m512 weights[TILE / LANES], largest = _mm512_set1_ps(maximum), sum = _mm512_setzero_ps();
#pragma GCC unroll 4
        for (int64_t v = 0; v < TILE / LANES; ++v) {
            weights[v] = _mm512_loadu_ps(scores + v * LANES);
            largest = _mm512_max_ps(weights[v], largest);
        }
        const float most = _mm512_reduce_max_ps(largest);
#pragma GCC unroll 4
        for (int64_t v = 0; v < TILE / LANES; ++v) {
            weights[v] = DotArithmetic::factor_of(_mm512_sub_ps(weights[v], _mm512_set1_ps(most)));
            sum = _mm512_add_ps(sum, weights[v]);
            if constexpr (SCALED) weights[v] = _mm512_mul_ps(weights[v], _mm512_loadu_ps(value_scales + v * LANES));
            _mm512_storeu_ps(scores + v * LANES, weights[v]);
        }
        factor = power(maximum - most);
        maximum = most;
        total = total * factor + _mm512_reduce_add_ps(sum);
    }

    // sums = sums * factors + weights . values.
    template <int64_t COUNT>
    static void add_values(const Stored* values, const Places& places, const Places& following, int64_t tokens,
                           int64_t kv_head, int64_t first_head, const Scratch& scratch, const DecodeSums& sums) {
        __m512 sum[COUNT][WIDTH];
        float* to = sums.sums + first_head * SIZE;
        const float* weights = scratch.scores.data() + first_head * TILE;
#pragma GCC unroll 4
        for (int64_t g = 0; g < COUNT; ++g) {
            const __m512 factor = _mm512_set1_ps(scratch.factors.data()[first_head + g]);
#pragma GCC unroll 8
            for (int64_t w = 0; w < WIDTH; ++w) {
                sum[g][w] = _mm512_mul_ps(_mm512_loadu_ps(to + g * SIZE + w * LANES), factor);
            }
        }
        for (int64_t t = 0; t < tokens; ++t) {
            const Stored* row = values + (places.of[t] + kv_head) * SIZE;
            prefetch(values + (following.of[t] + kv_head) * SIZE);
            __m512 weight[COUNT];
#pragma GCC unroll 4
            for (int64_t g = 0; g < COUNT; ++g) weight[g] = _mm512_set1_ps(weights[g * TILE + t]);
#pragma GCC unroll 8
            for (int64_t w = 0; w < WIDTH; ++w) {
                const __m512 numbers = widened(row + w * LANES);
#pragma GCC unroll 4
                for (int64_t g = 0; g < COUNT; ++g) sum[g][w] = _mm512_fmadd_ps(weight[g], numbers, sum[g][w]);
            }
        }
#pragma GCC unroll 4
        for (int64_t g = 0; g < COUNT; ++g) {
#pragma GCC unroll 8
            for (int64_t w = 0; w < WIDTH; ++w) _mm512_storeu_ps(to + g * SIZE + w * LANES, sum[g][w]);
        }
    }
};

#endif

}  // namespace quantgate
