// Reading memory as products of one row read weights: each piece from its front to its back, nothing written.
// Every number is one, so that the sum counts the numbers that were really read.
#include <atomic>

#include "common/lanes.h"
#include "probes/timing.h"

namespace quantgate {
namespace {

constexpr int64_t PIECE_NUMBERS = 1 << 18;
constexpr int64_t SUMS = 8;

int64_t count_of(const float* ones, int64_t numbers) {
    Lanes sums[SUMS] = {};
    int64_t done = 0;
    for (; done + SUMS * LANES <= numbers; done += SUMS * LANES) {
        for (int64_t sum = 0; sum < SUMS; ++sum) sums[sum] += load(ones + done + sum * LANES);
    }
    float rest = 0.0f;
    for (; done < numbers; ++done) rest += ones[done];
    for (int64_t sum = 0; sum < SUMS; ++sum) rest += sum_of(sums[sum]);
    return static_cast<int64_t>(rest);
}

int64_t read_all(const float* ones, int64_t numbers, int threads, double* seconds) {
    std::atomic<int64_t> counted{0};
    const int64_t pieces = (numbers + PIECE_NUMBERS - 1) / PIECE_NUMBERS;
    *seconds = seconds_of(pieces, threads, [&](int64_t begin, int64_t end) {
        for (int64_t piece = begin; piece < end; ++piece) {
            const int64_t first = piece * PIECE_NUMBERS;
            counted += count_of(ones + first, std::min(PIECE_NUMBERS, numbers - first));
        }
    });
    return counted;
}

}  // namespace
}  // namespace quantgate

// ones: float32 [numbers], each of them one. Returns how many were read, and in *seconds how long that took.
extern "C" int64_t quantgate_probe_read(const float* ones, int64_t numbers, int threads, double* seconds) {
    return quantgate::read_all(ones, numbers, threads, seconds);
}
