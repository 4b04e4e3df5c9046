// The decodes of a step: one new token per sequence against its paged keys and values (decode_sequence.h).
#include "attention/decode_sequence.h"
#include "attention/sequences.h"
#include "common/parallel.h"

namespace quantgate {
namespace {

template <class Number, class Stored>
void decode_attention(const Number* q, const CachedRows<Stored>& keys, const CachedRows<Stored>& values,
                      const Sequences& sequences, Number* out, const AttentionShape& shape, int threads) {
    const auto decode = decode_sequence_for<Number, Stored>(shape.head_dim);
    const int64_t heads_per_task = key_heads_per_task(sequences.count, shape.kv_heads, threads);
    const int64_t tasks_per_sequence = shape.kv_heads / heads_per_task, row_size = shape.heads * shape.head_dim;
    parallel_for(sequences.count * tasks_per_sequence, 1, threads, [&](int64_t begin, int64_t end) {
        AttentionScratch scratch(shape);
        for (int64_t task = begin; task < end; ++task) {
            const int64_t sequence = task / tasks_per_sequence, row = sequences.first_row(sequence);
            if (sequences.new_rows(sequence) != 1) continue;
            const int64_t kv_head = task % tasks_per_sequence * heads_per_task;
            decode(q + row * row_size, keys, values, sequences.block_tables + sequence * shape.max_blocks,
                   sequences.context_lens[sequence], {kv_head, kv_head + heads_per_task}, shape, scratch,
                   out + row * row_size);
        }
    });
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
