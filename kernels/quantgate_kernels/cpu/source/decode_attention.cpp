// One new token per sequence against its paged keys and values, read in place: softmax(q . K * scale) V with an online
// softmax in float32 (Milakov, Gimelshein 2018, arXiv:1805.02867).
// All query heads that share a key head are computed together, so that each key and value is read once. A sequence's
// result depends on that sequence alone: batch mates, threads and the choice of blocks change no bit.
// Bound: per key head, context * 2 * head_dim numbers read, and per query head 4 * context * head_dim operations.
#include <algorithm>
#include <limits>
#include <vector>

#include "exponential.h"
#include "lanes.h"
#include "number.h"
#include "parallel.h"

namespace quantgate {
namespace {

// Tokens between two rescalings of the sums; a tile of keys in float32 stays in the first-level cache.
constexpr int64_t TILE = 32;

struct Shape {
    int64_t heads, kv_heads, head_dim, block_size, max_blocks, window;
    float scale;

    int64_t group() const { return heads / kv_heads; }

    // A window of 0 hides nothing.
    int64_t first_seen(int64_t context) const { return window > 0 && window < context ? context - window : 0; }
};

// The width of a head in lanes, where it is known when compiling: sums then stay in registers. 0 takes the shape's.
constexpr int64_t ANY_WIDTH = 0;

// The key heads that one task takes.
struct HeadRange {
    int64_t begin, end;
};

// Rows of queries, sums and tile are padded with zeros to whole lanes.
struct Scratch {
    int64_t row;
    std::vector<float> queries, sums, tile, scores, maxima, totals;

    explicit Scratch(const Shape& shape)
        : row(padded_to_lanes(shape.head_dim)), queries(shape.heads * row), sums(queries.size()), tile(TILE * row),
          scores(shape.group() * TILE), maxima(shape.heads), totals(shape.heads) {}
};

// The cache slots of `tokens` positions from `first` on.
inline void find_slots(const int32_t* table, int64_t first, int64_t tokens, int64_t block_size, int64_t* slots) {
    int64_t block = first / block_size, offset = first % block_size;
    for (int64_t t = 0; t < tokens; ++t) {
        slots[t] = int64_t{table[block]} * block_size + offset;
        if (++offset == block_size) ++block, offset = 0;
    }
}

template <class Number>
void load_tile(const Number* cache, const int64_t* slots, int64_t tokens, int64_t kv_head, const Shape& shape,
               Scratch& scratch) {
    for (int64_t t = 0; t < tokens; ++t) {
        const Number* from = cache + (slots[t] * shape.kv_heads + kv_head) * shape.head_dim;
        float* to = &scratch.tile[t * scratch.row];
#pragma omp simd simdlen(16)
        for (int64_t d = 0; d < shape.head_dim; ++d) to[d] = to_float(from[d]);
    }
}

// Asks for rows that are read a tile later: between two steps the weights have swept the caches, and the processor does
// not foresee where the next block stands.
template <class Number>
void prefetch_tile(const Number* cache, const int64_t* slots, int64_t tokens, HeadRange kv_heads, const Shape& shape) {
    constexpr int64_t line = 64 / sizeof(Number);
    const int64_t numbers = (kv_heads.end - kv_heads.begin) * shape.head_dim;
    for (int64_t t = 0; t < tokens; ++t) {
        const Number* row = cache + (slots[t] * shape.kv_heads + kv_heads.begin) * shape.head_dim;
        for (int64_t d = 0; d < numbers; d += line) __builtin_prefetch(row + d);
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
template <class Number, int64_t WIDTH>
void attend_tile(const Number* keys, const Number* values, const int64_t* slots, int64_t tokens, int64_t kv_head,
                 const Shape& shape, Scratch& scratch) {
    const int64_t row = scratch.row, width = row / LANES, group = shape.group(), first_head = kv_head * group;
    const float* tile = scratch.tile.data();
    load_tile(keys, slots, tokens, kv_head, shape, scratch);
    for (int64_t g = 0; g < group; ++g) {
        score<WIDTH>(&scratch.queries[(first_head + g) * row], tile, tokens, width, &scratch.scores[g * TILE]);
    }
    load_tile(values, slots, tokens, kv_head, shape, scratch);
    for (int64_t g = 0; g < group; ++g) {
        const int64_t head = first_head + g;
        float* weights = &scratch.scores[g * TILE];
        const float factor = weigh(weights, tokens, scratch.maxima[head], scratch.totals[head]);
        add_weighted<WIDTH>(weights, tile, tokens, width, factor, &scratch.sums[head * row]);
    }
}

template <class Number, int64_t WIDTH>
void attend(const Number* q, const Number* keys, const Number* values, const int32_t* table, int64_t context,
            HeadRange kv_heads, const Shape& shape, Scratch& scratch, Number* out) {
    const int64_t size = shape.head_dim, row = scratch.row;
    const int64_t first_head = kv_heads.begin * shape.group(), last_head = kv_heads.end * shape.group();
    for (int64_t head = first_head; head < last_head; ++head) {
        for (int64_t d = 0; d < size; ++d) scratch.queries[head * row + d] = to_float(q[head * size + d]) * shape.scale;
    }
    std::fill(scratch.sums.begin(), scratch.sums.end(), 0.0f);
    std::fill(scratch.totals.begin(), scratch.totals.end(), 0.0f);
    std::fill(scratch.maxima.begin(), scratch.maxima.end(), -std::numeric_limits<float>::infinity());
    int64_t slots[2][TILE];
    int64_t *present = slots[0], *next = slots[1];
    const int64_t begin = shape.first_seen(context);
    int64_t tokens = std::min(TILE, context - begin);
    find_slots(table, begin, tokens, shape.block_size, present);
    for (int64_t first = begin, following; first < context;
         first += TILE, tokens = following, std::swap(present, next)) {
        following = std::min(TILE, context - first - tokens);
        find_slots(table, first + TILE, following, shape.block_size, next);
        prefetch_tile(keys, next, following, kv_heads, shape);
        prefetch_tile(values, next, following, kv_heads, shape);
        for (int64_t kv_head = kv_heads.begin; kv_head < kv_heads.end; ++kv_head) {
            attend_tile<Number, WIDTH>(keys, values, present, tokens, kv_head, shape, scratch);
        }
    }
    for (int64_t head = first_head; head < last_head; ++head) {
        const float inverse = 1.0f / scratch.totals[head];
        for (int64_t d = 0; d < size; ++d) {
            out[head * size + d] = rounded<Number>(scratch.sums[head * row + d] * inverse);
        }
    }
}

template <class Number, int64_t WIDTH>
void attend_sequences(const Number* q, const Number* keys, const Number* values, const int32_t* query_starts,
                      const int32_t* context_lens, const int32_t* block_tables, Number* out, int64_t sequences,
                      const Shape& shape, int threads) {
    // The heads of a token lie side by side: whole sequences read memory in longer stretches, where they are enough to
    // keep the threads busy.
    const int64_t heads_per_task = sequences >= 2 * threads ? shape.kv_heads : 1;
    const int64_t tasks_per_sequence = shape.kv_heads / heads_per_task, row_size = shape.heads * shape.head_dim;
    parallel_for(sequences * tasks_per_sequence, 1, threads, [&](int64_t begin, int64_t end) {
        Scratch scratch(shape);
        for (int64_t task = begin; task < end; ++task) {
            const int64_t sequence = task / tasks_per_sequence, row = query_starts[sequence];
            if (query_starts[sequence + 1] - row != 1) continue;
            const int64_t kv_head = task % tasks_per_sequence * heads_per_task;
            attend<Number, WIDTH>(q + row * row_size, keys, values, block_tables + sequence * shape.max_blocks,
                                  context_lens[sequence], {kv_head, kv_head + heads_per_task}, shape, scratch,
                                  out + row * row_size);
        }
    });
}

template <class Number>
void decode_attention(const Number* q, const Number* keys, const Number* values, const int32_t* query_starts,
                      const int32_t* context_lens, const int32_t* block_tables, Number* out, int64_t sequences,
                      const Shape& shape, int threads) {
    const int64_t width = padded_to_lanes(shape.head_dim) / LANES;
    const auto run = width == 4   ? attend_sequences<Number, 4>
                     : width == 5 ? attend_sequences<Number, 5>
                     : width == 6 ? attend_sequences<Number, 6>
                     : width == 8 ? attend_sequences<Number, 8>
                                  : attend_sequences<Number, ANY_WIDTH>;
    run(q, keys, values, query_starts, context_lens, block_tables, out, sequences, shape, threads);
}

}  // namespace
}  // namespace quantgate

// Rows of sequences with more than one new token are left as they are.
#define QUANTGATE_DECODE_ATTENTION(NAME, NUMBER)                                                                     \
    extern "C" void NAME(const NUMBER* q, const NUMBER* keys, const NUMBER* values, const int32_t* query_starts,     \
                         const int32_t* context_lens, const int32_t* block_tables, NUMBER* out, int64_t sequences,   \
                         int64_t heads, int64_t kv_heads, int64_t head_dim, int64_t block_size, int64_t max_blocks,  \
                         int64_t window, float scale, int threads) {                                                 \
        quantgate::decode_attention(q, keys, values, query_starts, context_lens, block_tables, out, sequences,       \
                                    {heads, kv_heads, head_dim, block_size, max_blocks, window, scale}, threads);    \
    }

QUANTGATE_DECODE_ATTENTION(quantgate_decode_attention_bfloat16, quantgate::BFloat16)
QUANTGATE_DECODE_ATTENTION(quantgate_decode_attention_float32, float)
