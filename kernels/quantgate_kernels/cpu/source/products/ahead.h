// What a product reads soon, fetched from memory while it computes.
#pragma once

#include <cstdint>

#include "common/intrinsics.h"
#include "products/panels.h"

namespace quantgate {

// The only tile of a panel reads it as fast as memory gives it, and memory gives more to who asks early: far enough
// ahead that a line is there in time, and so near that it is still in the nearest cache.
constexpr int64_t BYTES_AHEAD = 6144;

// A member reads a stretch of memory, but not at one speed: of many tiles of rows only the first meets a panel in memory,
// the others in a near cache, and memory rests meanwhile. So each step of a panel fetches its share of the next panel, the
// `stride` bytes after those of the step before: two lines of a cache at most.
// Without a stride the panel has one tile. Then each step fetches what the same tile reads soon, past the caches: nobody
// reads it again, and there it would take the place of what the engine needs between two steps.
struct Ahead {
    const uint8_t* next;
    int64_t stride;

    bool once() const { return stride == 0; }

    // at: where the step reads. ONCE is what `once` says, known when the tile was compiled.
    template <Form FORM, bool ONCE>
    QUANTGATE_INLINED void fetch(const uint8_t* at) {
        if constexpr (ONCE) {
            for (int64_t line = 0; line < step_bytes(FORM); line += 64) __builtin_prefetch(at + BYTES_AHEAD + line, 0, 0);
        } else {
            __builtin_prefetch(next, 0, 2);
            __builtin_prefetch(next + stride / 2, 0, 2);
            next += stride;
        }
    }
};

}  // namespace quantgate
