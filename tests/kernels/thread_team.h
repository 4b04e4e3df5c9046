// Teams of threads for programs under sanitizers, which know std::thread and not the runtimes that torch brings.
#pragma once

#include <thread>
#include <vector>

extern "C" void quantgate_use_team(void* run, void* size);

namespace sanitized {

// How many the team has that this thread is in.
inline thread_local int members = 1;

// A team as OpenMP's runtimes start one: the caller is a member, and all are done when it returns.
inline void run_team(void (*work)(void*), void* argument, unsigned threads, unsigned) {
    const auto join = [=] {
        members = static_cast<int>(threads);
        work(argument);
        members = 1;
    };
    std::vector<std::thread> others;
    for (unsigned other = 1; other < threads; ++other) others.emplace_back(join);
    join();
    for (std::thread& other : others) other.join();
}

inline int team_size() { return members; }

inline void use_threads() {
    quantgate_use_team(reinterpret_cast<void*>(run_team), reinterpret_cast<void*>(team_size));
}

}  // namespace sanitized
