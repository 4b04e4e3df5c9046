// A team of threads that goes through the phases of a step together: one start for all layers, and a meeting between two
// phases, which costs a fraction of what starting a team does.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/parallel.h"

namespace quantgate {

// Where the members of a team wait for each other. They wait by looking: a phase takes microseconds, and a thread that
// sleeps takes longer than that to wake. A member that waits long gives its processor away, so that a team with more
// members than processors gets on too.
class Meeting {
public:
    explicit Meeting(int64_t members) : members_(members) {}

    void wait();

    // The next item of the phase that nobody else has; the count starts anew at each meeting.
    int64_t claim() { return phases_[phase_parity()].next.fetch_add(1, std::memory_order_relaxed); }

private:
    struct alignas(64) Counter {
        std::atomic<int64_t> next{0};
    };

    int64_t phase_parity() const { return passed_.count.load(std::memory_order_relaxed) & 1; }

    struct alignas(64) Passed {
        std::atomic<int64_t> count{0};
    };

    const int64_t members_;
    alignas(64) std::atomic<int64_t> arrived_{0};
    Passed passed_;
    Counter phases_[2];
};

// One thread of a team.
struct Member {
    int64_t index, count;
    Meeting& meeting;

    // Goes on when all members are here: what they wrote before can be read then.
    void meet() const {
        if (count > 1) meeting.wait();
    }

    // Calls body(item) for items of 0..items, each given to one member, as they come free. A meeting must follow.
    template <class Body>
    void share(int64_t items, const Body& body) const {
        if (count == 1) {
            for (int64_t item = 0; item < items; ++item) body(item);
            return;
        }
        int64_t item;
        while ((item = meeting.claim()) < items) body(item);
    }

    // Calls body(begin, end) for this member's part of 0..items: equal parts, in order.
    template <class Body>
    void split(int64_t items, const Body& body) const {
        const int64_t begin = items * index / count, end = items * (index + 1) / count;
        if (begin < end) body(begin, end);
    }
};

using TeamWork = void (*)(void* argument, const Member& member);

// Runs work(argument, member) on each member of a team of at most `threads`, and returns when all are done.
void run_team_of(int threads, TeamWork work, void* argument);

template <class Body>
void run_as_team(int threads, Body& body) {
    run_team_of(
        threads, [](void* argument, const Member& member) { (*static_cast<Body*>(argument))(member); }, &body);
}

}  // namespace quantgate
