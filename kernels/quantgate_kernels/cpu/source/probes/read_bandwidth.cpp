// Reading memory as products of one row read weights: each piece from its front to its back, nothing written.
// Every number is one, so that the sum counts the numbers that were really read.
#include <atomic>

#include "probes/one_register.h"
#include "probes/timing.h"

namespace quantgate {
namespace {

constexpr int64_t PIECE_NUMBERS = 1 << 18;
constexpr int64_t SUMS = 8;

int64_t count_of(const float* ones, int64_t numbers) {
    OneRegister sums[SUMS] = {};
    int64_t done = 0;
    for (; done + SUMS * REGISTER_NUMBERS <= numbers; done += SUMS * REGISTER_NUMBERS) {
        for (int64_t sum = 0; sum < SUMS; ++sum) {
            OneRegister next;
            std::memcpy(&next, ones + done + sum * REGISTER_NUMBERS, sizeof next);
            sums[sum] += next;
        }
    }
    OneRegister total = {};
    for (int64_t sum = 0; sum < SUMS; ++sum) total += sums[sum];
    float counted = 0.0f;
    for (int64_t lane = 0; lane < REGISTER_NUMBERS; ++lane) counted += total[lane];
    for (; done < numbers; ++done) counted += ones[done];
    return static_cast<int64_t>(counted);
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
