// One new token of one sequence against its paged keys and values, read in place: softmax(q . K * scale) V with an
// online softmax in float32 (Milakov, Gimelshein 2018, arXiv:1805.02867).
// All query heads that share a key head are computed together, so that each key and value is read once. The result
// depends on the sequence alone: neither its blocks nor the key heads that are computed beside it change a bit.
// Bound: per key head, context * 2 * head_dim numbers read (int8: and a scale for each row), and per query head
// 4 * context * head_dim operations.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "attention/attention_tile.h"

namespace quantgate {

// q and out: the token's row, all heads.
template <class Number, class Stored, int64_t WIDTH>
void decode_sequence(const Number* q, const CachedRows<Stored>& keys, const CachedRows<Stored>& values,
                     const int32_t* table, int64_t context, HeadRange kv_heads, const AttentionShape& shape,
                     AttentionScratch& scratch, Number* out) {
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

template <class Number, class Stored>
using DecodeSequence = void (*)(const Number*, const CachedRows<Stored>&, const CachedRows<Stored>&, const int32_t*,
                                int64_t, HeadRange, const AttentionShape&, AttentionScratch&, Number*);

// The function for heads of this width.
template <class Number, class Stored>
DecodeSequence<Number, Stored> decode_sequence_for(int64_t head_dim) {
    const int64_t width = padded_to_lanes(head_dim) / LANES;
    return width == 4   ? decode_sequence<Number, Stored, 4>
           : width == 5 ? decode_sequence<Number, Stored, 5>
           : width == 6 ? decode_sequence<Number, Stored, 6>
           : width == 8 ? decode_sequence<Number, Stored, 8>
                        : decode_sequence<Number, Stored, ANY_WIDTH>;
}

// The key heads of a token lie side by side: whole sequences read memory in longer stretches, where they are enough to
// keep the threads busy.
inline int64_t key_heads_per_task(int64_t sequences, int64_t kv_heads, int threads) {
    return sequences >= 2 * threads ? kv_heads : 1;
}

}  // namespace quantgate
