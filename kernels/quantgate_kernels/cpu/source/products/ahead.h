// What a product reads soon, fetched from memory while it computes.
#pragma once

#include <cstdint>

#include "common/intrinsics.h"

namespace quantgate {

// A member reads a stretch of memory, but not at one speed: of two tiles of rows the first meets a panel in memory, the
// second in a near cache, and memory rests meanwhile. So each step of a panel fetches its share of the next panel, the
// `stride` bytes after those of the step before: two lines of a cache at most.
struct Ahead {
    const uint8_t* next;
    int64_t stride;

    QUANTGATE_INLINED void fetch() {
        __builtin_prefetch(next, 0, 2);
        __builtin_prefetch(next + stride / 2, 0, 2);
        next += stride;
    }
};

}  // namespace quantgate
