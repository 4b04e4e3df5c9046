// The parts in which a decode sums its context.
#pragma once

#include <algorithm>
#include <cstdint>

#include "attention/attention_tile.h"

namespace quantgate {

// So many that threads can share them out, and not so many that joining them shows. They depend on the context alone:
// where they begin is seen in a result's last bits.
struct ContextParts {
    static constexpr int64_t MOST = 16, FEWEST_TOKENS = 2 * TILE;

    int64_t begin, end, size;

    ContextParts(int64_t context, const AttentionShape& shape) : begin(shape.first_seen(context)), end(context) {
        const int64_t tiles = (end - begin + MOST * TILE - 1) / (MOST * TILE);
        size = std::max(FEWEST_TOKENS, tiles * TILE);
    }

    int64_t count() const { return (end - begin + size - 1) / size; }
    int64_t first_token(int64_t part) const { return std::min(end, begin + part * size); }
};

}  // namespace quantgate
