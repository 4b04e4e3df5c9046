// Loops over rows or tasks on the OpenMP runtime that torch has loaded already.
//
// The kernels are not linked against an OpenMP runtime: a second one in the process would keep a second team of threads
// that fights the first for the cores. The caller hands over the entry points of torch's own (GNU's, which Intel's and
// LLVM's runtimes export as well); without them every loop runs on the calling thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace quantgate {

using RunTeam = void (*)(void (*work)(void*), void* argument, unsigned threads, unsigned flags);

// How many threads the team has that the caller is in.
using TeamSize = int (*)();

extern RunTeam run_team;
extern TeamSize team_size;

// Calls body(begin, end) on disjoint ranges of at most `grain` items that cover 0..count. The ranges do not depend on
// the number of threads, and a body must not depend on the ranges: results are the same bits for any number of threads.
template <class Body>
void parallel_for(int64_t count, int64_t grain, int threads, const Body& body) {
    const int64_t ranges = (count + grain - 1) / grain;
    const int64_t team = std::min<int64_t>(threads, ranges);
    if (team <= 1 || run_team == nullptr) {
        if (count > 0) body(int64_t{0}, count);
        return;
    }
    struct Share {
        const Body& body;
        int64_t count, grain;
        std::atomic<int64_t> next{0};
    } share{body, count, grain};
    const auto work = [](void* argument) {
        Share& mine = *static_cast<Share*>(argument);
        int64_t begin;
        while ((begin = mine.next.fetch_add(mine.grain, std::memory_order_relaxed)) < mine.count) {
            mine.body(begin, std::min(begin + mine.grain, mine.count));
        }
    };
    run_team(work, &share, static_cast<unsigned>(team), 0);
}

// Entering a team costs some microseconds, as long as this many elements of a simple kernel take one thread.
constexpr int64_t ELEMENTS_WORTH_A_THREAD = 8192;

inline int64_t rows_worth_a_thread(int64_t elements_per_row) {
    return std::max<int64_t>(1, ELEMENTS_WORTH_A_THREAD / std::max<int64_t>(1, elements_per_row));
}

}  // namespace quantgate
