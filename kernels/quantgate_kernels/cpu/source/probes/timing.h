// Probes measure what the processor does at most. They take their own time, so that no call from Python is part of it.
#pragma once

#include <chrono>

#include "common/parallel.h"

namespace quantgate {

// Seconds until body(begin, end) has been called for all of 0..pieces by the team. Threads take pieces as they come free,
// so that one which starts late or is interrupted holds up the others by a piece at most.
template <class Body>
double seconds_of(int64_t pieces, int threads, const Body& body) {
    const auto started = std::chrono::steady_clock::now();
    parallel_for(pieces, 1, threads, body);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
}

}  // namespace quantgate
