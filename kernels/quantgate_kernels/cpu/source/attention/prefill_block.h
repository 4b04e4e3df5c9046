// Causal grouped-query attention of a block of query rows of one sequence, for one key head, over the paged cache: the
// online softmax of decode_sequence.h, with products of many queries at once.
//
// Queries lie in lanes and keys in rows, so that a query's largest score and sum of weights need no sum across lanes,
// and keys are read in the order in which they are stored. Keys that no query of a group sees are not multiplied; what
// only some of them see is hidden key by key.
// The result depends on the sequence and on where its blocks of rows begin, and on nothing beside it in the step.
// Bound: 4 * head_dim operations for each query head and key that it sees; the cache is read once per block of rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "attention/attention_tile.h"
#include "attention/dot_arithmetic.h"
#include "attention/key_block.h"
#include "attention/query_block.h"
#include "attention/register_tile.h"

namespace quantgate {

template <class Arithmetic>
struct PrefillScratch {
    static constexpr int64_t WIDEST = Arithmetic::GROUP * LANES;

    KeyBlock<Arithmetic> keys;
    QueryBlock<Arithmetic> queries;
    AlignedArray<float> scores{Arithmetic::TOKENS * WIDEST}, factors{WIDEST};
    AlignedArray<typename Arithmetic::Unit> weights{Arithmetic::TOKENS / Arithmetic::NUMBERS * WIDEST};

    explicit PrefillScratch(const AttentionShape& shape) : keys(shape.head_dim), queries(shape) {}
};

// Rows `first_row`..`first_row + rows` of the sequence's new ones, which end its context.
struct PrefillRows {
    const int32_t* table;
    int64_t context, new_rows, first_row, rows, kv_head;

    int64_t first_position() const { return context - new_rows + first_row; }
};

// Tokens begin..end of a tile.
struct TokenRange {
    int64_t begin, end;
};

// Scores of keys that a lane does not see become minus infinity; all lanes see first_of_all..last_of_all.
template <class Arithmetic>
void hide(const QueryGroup<Arithmetic>& queries, int64_t first_token, TokenRange tokens, int64_t first_of_all,
          int64_t last_of_all, float* scores) {
    const int64_t lanes = queries.lanes();
    for (int64_t t = tokens.begin; t < tokens.end; ++t) {
        const auto position = static_cast<int32_t>(first_token + t);
        if (position >= first_of_all && position <= last_of_all) continue;
        float* row = scores + t * lanes;
#pragma omp simd simdlen(16)
        for (int64_t lane = 0; lane < lanes; ++lane) {
            const bool hidden = (position < queries.first_seen[lane]) | (position > queries.last_seen[lane]);
            row[lane] = hidden ? -std::numeric_limits<float>::infinity() : row[lane];
        }
    }
}

// One tile of keys for one group of queries.
template <class Arithmetic, int64_t COUNT, bool SCALED>
void attend_group(const QueryGroup<Arithmetic>& queries, int64_t first_token, TokenRange tokens,
                  const AttentionShape& shape, PrefillScratch<Arithmetic>& scratch) {
    constexpr int64_t lanes = COUNT * LANES, numbers = Arithmetic::NUMBERS, rows = Arithmetic::ROWS;
    const KeyBlock<Arithmetic>& keys = scratch.keys;
    const int64_t depth = (shape.head_dim + numbers - 1) / numbers, size = (shape.head_dim + rows - 1) / rows * rows;
    float *scores = scratch.scores.data(), *factors = scratch.factors.data();
    typename Arithmetic::Unit* weights = scratch.weights.data();
    score_keys<Arithmetic, COUNT>(keys.keys.data(), keys.key_row, queries.queries, depth, keys.multipliers.data(),
                                  tokens.begin, tokens.end, scores);
    hide(queries, first_token, tokens, shape.first_seen(queries.last_position + 1), queries.first_position, scores);
    Arithmetic::template weigh<COUNT, SCALED>(scores, tokens.begin, tokens.end, keys.value_scales.data(),
                                              queries.maxima, queries.totals, factors, weights);
    const int64_t first_unit = tokens.begin / numbers, units = (tokens.end - tokens.begin) / numbers;
    add_values<Arithmetic, COUNT>(keys.values.data() + first_unit * keys.value_row, keys.value_row,
                                  weights + first_unit * lanes, units, factors, size, queries.sums);
}

// The function that has the group's width built in.
template <class Arithmetic, bool SCALED, int64_t COUNT = Arithmetic::GROUP>
void attend_group_of(const QueryGroup<Arithmetic>& queries, int64_t first_token, TokenRange tokens,
                     const AttentionShape& shape, PrefillScratch<Arithmetic>& scratch) {
    if constexpr (COUNT > 1) {
        if (queries.count < COUNT) {
            return attend_group_of<Arithmetic, SCALED, COUNT - 1>(queries, first_token, tokens, shape, scratch);
        }
    }
    attend_group<Arithmetic, COUNT, SCALED>(queries, first_token, tokens, shape, scratch);
}

// q and out: the block's first row, all heads; rows of results are out_row numbers apart.
template <class Number, class Stored>
void prefill_block(const Number* q, const CachedRows<Stored>& keys, const CachedRows<Stored>& values,
                   const PrefillRows& block, const AttentionShape& shape,
                   PrefillScratch<typename ArithmeticOf<Number>::Type>& scratch, Number* out, int64_t out_row) {
    using Arithmetic = typename ArithmeticOf<Number>::Type;
    constexpr int64_t tile = Arithmetic::TOKENS, rows = Arithmetic::ROWS;
    const int64_t position = block.first_position(), end = position + block.rows;
    const HeadRange own_head{block.kv_head, block.kv_head + 1};
    scratch.queries.load(q, position, block.rows, block.kv_head, shape);
    int64_t slots[2][tile];
    int64_t *present = slots[0], *next = slots[1];
    // No tile holds a token that none of the rows sees: it may have been given away.
    const int64_t begin = shape.first_seen(position + 1);
    int64_t tokens = std::min(tile, end - begin);
    find_slots(block.table, begin, tokens, shape.block_size, present);
    for (int64_t first = begin, following; first < end; first += tile, tokens = following, std::swap(present, next)) {
        following = std::min(tile, end - first - tokens);
        find_slots(block.table, first + tile, following, shape.block_size, next);
        prefetch_tile(keys, next, following, own_head, shape);
        prefetch_tile(values, next, following, own_head, shape);
        scratch.keys.pack(keys, values, present, tokens, block.kv_head, shape);
        for (int64_t i = 0; i < scratch.queries.groups(); ++i) {
            const QueryGroup<Arithmetic> queries = scratch.queries.group(i);
            const int64_t seen_from = std::max<int64_t>(0, shape.first_seen(queries.first_position + 1) - first);
            const int64_t seen_to = std::min(tokens, queries.last_position + 1 - first);
            if (seen_from >= seen_to) continue;
            const TokenRange seen{seen_from / rows * rows, (seen_to + rows - 1) / rows * rows};
            attend_group_of<Arithmetic, CachedRows<Stored>::SCALED>(queries, first, seen, shape, scratch);
        }
    }
    scratch.queries.store(block.kv_head, shape, out, out_row);
}

}  // namespace quantgate
