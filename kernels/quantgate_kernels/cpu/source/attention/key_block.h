// A tile of consecutive tokens of one key head, copied out of the paged cache in the order in which register_tile.h
// multiplies it. It stays in the first-level cache for all queries of a block.
#pragma once

#include <algorithm>
#include <cstdint>

#include "attention/aligned_array.h"
#include "attention/attention_tile.h"

namespace quantgate {

template <class Arithmetic>
struct KeyBlock {
    static constexpr int64_t TOKENS = Arithmetic::TOKENS, ROWS = Arithmetic::ROWS, NUMBERS = Arithmetic::NUMBERS;
    static_assert(TOKENS % ROWS == 0 && ROWS % NUMBERS == 0, "tokens fill whole tiles of sums, and those whole units");

    int64_t key_row, value_row;
    // keys: [TOKENS][key_row], values: [TOKENS / NUMBERS][value_row], each unit of tokens that share it.
    AlignedArray<typename Arithmetic::Unit> keys, values;
    // What scores are multiplied by, and the scales of values where the cache has them: [TOKENS].
    AlignedArray<float> multipliers, value_scales;

    explicit KeyBlock(int64_t head_dim)
        : key_row(Arithmetic::key_row(head_dim)), value_row(Arithmetic::value_row(head_dim)), keys(TOKENS * key_row),
          values(TOKENS / NUMBERS * value_row), multipliers(TOKENS), value_scales(TOKENS) {}

    // Zeros stand for tokens that fill the last tile of sums.
    template <class Stored>
    void pack(const CachedRows<Stored>& key_rows, const CachedRows<Stored>& value_rows, const int64_t* slots,
              int64_t tokens, int64_t kv_head, const AttentionShape& shape) {
        const int64_t size = shape.head_dim, filled = (tokens + ROWS - 1) / ROWS * ROWS;
        const auto row_of = [&](const CachedRows<Stored>& cache, int64_t t) {
            return t < tokens ? cache.numbers + (slots[t] * shape.kv_heads + kv_head) * size : nullptr;
        };
        for (int64_t t = 0; t < filled; ++t) {
            Arithmetic::copy_row(row_of(key_rows, t), size, keys.data() + t * key_row);
        }
        for (int64_t t = 0; t < filled; t += NUMBERS) {
            const Stored* rows[NUMBERS];
            for (int64_t i = 0; i < NUMBERS; ++i) rows[i] = row_of(value_rows, t + i);
            Arithmetic::join_rows(rows, size, values.data() + t / NUMBERS * value_row);
        }
        const float multiplier = shape.scale * Arithmetic::SCORE_SCALE;
        for (int64_t t = 0; t < filled; ++t) multipliers.data()[t] = t < tokens ? multiplier : 0.0f;
        if constexpr (CachedRows<Stored>::SCALED) {
            for (int64_t t = 0; t < tokens; ++t) {
                const int64_t place = slots[t] * shape.kv_heads + kv_head;
                multipliers.data()[t] *= key_rows.scales[place];
                value_scales.data()[t] = value_rows.scales[place];
            }
            std::fill(value_scales.data() + tokens, value_scales.data() + filled, 0.0f);
        }
    }
};

}  // namespace quantgate
