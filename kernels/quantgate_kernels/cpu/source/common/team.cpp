#include "common/team.h"

#include <sched.h>

#include <new>

#include "common/intrinsics.h"

namespace quantgate {
namespace {

// Looks at a flag so often, some tens of microseconds, before it lets another thread have the processor.
constexpr int LOOKS_BEFORE_YIELD = 4096;

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield" ::: "memory");
#endif
}

}  // namespace

void Meeting::wait() {
    const int64_t phase = passed_.count.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == members_) {
        arrived_.store(0, std::memory_order_relaxed);
        // The counter that this phase used is the one after the next phase's, so that nobody claims from it now.
        phases_[phase & 1].next.store(0, std::memory_order_relaxed);
        passed_.count.store(phase + 1, std::memory_order_release);
        return;
    }
    for (int looks = 0; passed_.count.load(std::memory_order_acquire) == phase; ++looks) {
        if (looks < LOOKS_BEFORE_YIELD) {
            relax();
        } else {
            sched_yield();
        }
    }
}

void run_team_of(int threads, TeamWork work, void* argument) {
    if (threads <= 1 || run_team == nullptr || team_size == nullptr) {
        Meeting meeting(1);
        work(argument, Member{0, 1, meeting});
        return;
    }
    // A runtime may give fewer threads than it is asked for, and members that wait for one that never comes wait for
    // ever: so the first that arrives asks how many there are.
    struct Start {
        TeamWork work;
        void* argument;
        std::atomic<int64_t> next{0};
        std::atomic<Meeting*> meeting{nullptr};
        alignas(Meeting) unsigned char place[sizeof(Meeting)];
    } start{work, argument, {}, {}, {}};
    const auto enter = [](void* shared) {
        Start& mine = *static_cast<Start*>(shared);
        const int64_t index = mine.next.fetch_add(1, std::memory_order_acq_rel), count = team_size();
        if (index == 0) mine.meeting.store(new (mine.place) Meeting(count), std::memory_order_release);
        Meeting* meeting;
        while ((meeting = mine.meeting.load(std::memory_order_acquire)) == nullptr) relax();
        mine.work(mine.argument, Member{index, count, *meeting});
    };
    run_team(enter, &start, static_cast<unsigned>(threads), 0);
}

}  // namespace quantgate
