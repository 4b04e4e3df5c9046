// What attention reads: shapes, rows of the paged cache, and where a tile of consecutive tokens stands in it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

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

// Heads begin..end, of keys or of queries.
struct HeadRange {
    int64_t begin, end;
};

// The cache slots of a tile's tokens.
struct TileSlots {
    int64_t tokens;
    int64_t of[TILE];
};

// The cache slots of `tokens` positions from `first` on.
inline void find_slots(const int32_t* table, int64_t first, int64_t tokens, int64_t block_size, int64_t* slots) {
    int64_t block = first / block_size, offset = first % block_size;
    for (int64_t t = 0; t < tokens; ++t) {
        slots[t] = int64_t{table[block]} * block_size + offset;
        if (++offset == block_size) ++block, offset = 0;
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

}  // namespace quantgate
