// One new token per sequence against its paged keys and values, read in place: softmax(q . K * scale) V with an online
// softmax in float32 (Milakov, Gimelshein 2018, arXiv:1805.02867).
// All query heads that share a key head are computed together, so that each key and value is read once. A sequence's
// result depends on that sequence alone: batch mates, threads and the choice of blocks change no bit.
// Bound: per key head, context * 2 * head_dim numbers read (int8: and a scale for each row), and per query head
// 4 * context * head_dim operations.
#include <algorithm>
#include <limits>

#include "attention/attention_tile.h"
#include "common/parallel.h"

namespace quantgate {
namespace {

template <class Number, class Stored, int64_t WIDTH>
void attend(const Number* q, const CachedRows<Stored>& keys, const CachedRows<Stored>& values, const int32_t* table,
            int64_t context, HeadRange kv_heads, const AttentionShape& shape, AttentionScratch& scratch, Number* out) {
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
            attend_tile<Stored, WIDTH>(keys, values, present, tokens, kv_head, shape, scratch);
        }
    }
    for (int64_t head = first_head; head < last_head; ++head) {
        const float inverse = 1.0f / scratch.totals[head];
        for (int64_t d = 0; d < size; ++d) {
            out[head * size + d] = rounded<Number>(scratch.sums[head * row + d] * inverse);
        }
    }
}

// The step's sequences: where their rows of queries are, how long their contexts, which blocks they have.
struct Sequences {
    const int32_t *query_starts, *context_lens, *block_tables;
    int64_t count;
};

template <class Number, class Stored, int64_t WIDTH>
void attend_sequences(const Number* q, const CachedRows<Stored>& keys, const CachedRows<Stored>& values,
                      const Sequences& sequences, Number* out, const AttentionShape& shape, int threads) {
    // The heads of a token lie side by side: whole sequences read memory in longer stretches, where they are enough to
    // keep the threads busy.
    const int64_t heads_per_task = sequences.count >= 2 * threads ? shape.kv_heads : 1;
    const int64_t tasks_per_sequence = shape.kv_heads / heads_per_task, row_size = shape.heads * shape.head_dim;
    parallel_for(sequences.count * tasks_per_sequence, 1, threads, [&](int64_t begin, int64_t end) {
        AttentionScratch scratch(shape);
        for (int64_t task = begin; task < end; ++task) {
            const int64_t sequence = task / tasks_per_sequence, row = sequences.query_starts[sequence];
            if (sequences.query_starts[sequence + 1] - row != 1) continue;
            const int64_t kv_head = task % tasks_per_sequence * heads_per_task;
            attend<Number, Stored, WIDTH>(
                q + row * row_size, keys, values, sequences.block_tables + sequence * shape.max_blocks,
                sequences.context_lens[sequence], {kv_head, kv_head + heads_per_task}, shape, scratch,
                out + row * row_size);
        }
    });
}

template <class Number, class Stored>
void decode_attention(const Number* q, const CachedRows<Stored>& keys, const CachedRows<Stored>& values,
                      const Sequences& sequences, Number* out, const AttentionShape& shape, int threads) {
    const int64_t width = padded_to_lanes(shape.head_dim) / LANES;
    const auto run = width == 4   ? attend_sequences<Number, Stored, 4>
                     : width == 5 ? attend_sequences<Number, Stored, 5>
                     : width == 6 ? attend_sequences<Number, Stored, 6>
                     : width == 8 ? attend_sequences<Number, Stored, 8>
                                  : attend_sequences<Number, Stored, ANY_WIDTH>;
    run(q, keys, values, sequences, out, shape, threads);
}

// The cache holds codes where it has scales, and else numbers of the queries' type.
template <class Number>
void decode_attention(const Number* q, const void* keys, const void* values, const float* key_scales,
                      const float* value_scales, const Sequences& sequences, Number* out, const AttentionShape& shape,
                      int threads) {
    if (key_scales != nullptr) {
        const CachedRows<int8_t> key_rows{static_cast<const int8_t*>(keys), key_scales};
        const CachedRows<int8_t> value_rows{static_cast<const int8_t*>(values), value_scales};
        return decode_attention(q, key_rows, value_rows, sequences, out, shape, threads);
    }
    const CachedRows<Number> key_rows{static_cast<const Number*>(keys), nullptr};
    const CachedRows<Number> value_rows{static_cast<const Number*>(values), nullptr};
    decode_attention(q, key_rows, value_rows, sequences, out, shape, threads);
}

}  // namespace
}  // namespace quantgate

// Rows of sequences with more than one new token are left as they are.
#define QUANTGATE_DECODE_ATTENTION(NAME, NUMBER)                                                                     \
    extern "C" void NAME(const NUMBER* q, const void* keys, const void* values, const float* key_scales,             \
                         const float* value_scales, const int32_t* query_starts, const int32_t* context_lens,        \
                         const int32_t* block_tables, NUMBER* out, int64_t sequences, int64_t heads,                 \
                         int64_t kv_heads, int64_t head_dim, int64_t block_size, int64_t max_blocks, int64_t window, \
                         float scale, int threads) {                                                                 \
        quantgate::decode_attention(q, keys, values, key_scales, value_scales,                                       \
                                    {query_starts, context_lens, block_tables, sequences}, out,                      \
                                    {heads, kv_heads, head_dim, block_size, max_blocks, window, scale}, threads);    \
    }

QUANTGATE_DECODE_ATTENTION(quantgate_decode_attention_bfloat16, quantgate::BFloat16)
QUANTGATE_DECODE_ATTENTION(quantgate_decode_attention_float32, float)
