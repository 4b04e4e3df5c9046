// How many multiply-adds the processor makes at most, by the width of what is multiplied: loops that stay in registers,
// with so many sums that none waits for its own last addition.
// All operands are one, so that the sums count the multiply-adds that were really made. A float32 counts to 2^24 without
// rounding: callers ask for less than 2^19 rounds.
#include <atomic>

#include "probes/one_register.h"
#include "probes/timing.h"

namespace quantgate {
namespace {

// As many as are enough for any processor, and few enough for 16 registers.
constexpr int SUMS = 12;

// Read anew by each piece of work: to the compiler, no two pieces are alike, and no multiplication is by one.
volatile float float_one = 1.0f;

// sum + 1 x 1 in each lane.
struct Float32 {
    using Sum = OneRegister;
    const Sum one = Sum{} + float_one;

    static Sum all(int number) { return Sum{} + static_cast<float>(number); }

    QUANTGATE_INLINED Sum add(const Sum& sum) const { return sum * one + one; }
};

#if QUANTGATE_AVX512_BF16
volatile int pair_of_ones = 0x3f803f80;

// sum + 1 x 1 + 1 x 1 in each of 16 lanes.
struct BFloat16Pairs {
    using Sum = Lanes;
    const __m512i ones = _mm512_set1_epi32(pair_of_ones);

    static Sum all(int number) { return Sum{} + static_cast<float>(number); }

    QUANTGATE_INLINED Sum add(const Sum& sum) const {
        return (Sum)_mm512_dpbf16_ps((__m512)sum, (__m512bh)ones, (__m512bh)ones);
    }
};
using SixteenBit = BFloat16Pairs;
#else
// Without an instruction of their own, 16-bit numbers are widened and multiplied in float32.
using SixteenBit = Float32;
#endif

#if QUANTGATE_AVX512_VNNI
typedef int32_t Counts __attribute__((vector_size(4 * LANES)));
volatile int four_ones = 0x01010101;

// sum + four times 1 x 1 in each of 16 lanes.
struct Int8Quads {
    using Sum = Counts;
    const __m512i ones = _mm512_set1_epi32(four_ones);

    static Sum all(int number) { return Sum{} + number; }

    QUANTGATE_INLINED Sum add(const Sum& sum) const {
        return (Sum)_mm512_dpbusd_epi32((__m512i)sum, ones, ones);
    }
};
#endif

template <class Arithmetic>
int64_t multiply_adds(int64_t rounds) {
    const Arithmetic arithmetic;
    typename Arithmetic::Sum sums[SUMS];
    // They start from unlike numbers, or one of them would be computed for all.
    for (int sum = 0; sum < SUMS; ++sum) sums[sum] = Arithmetic::all(sum);
    for (int64_t round = 0; round < rounds; ++round) {
        for (int sum = 0; sum < SUMS; ++sum) sums[sum] = arithmetic.add(sums[sum]);
    }
    typename Arithmetic::Sum total = Arithmetic::all(-SUMS * (SUMS - 1) / 2);
    for (int sum = 0; sum < SUMS; ++sum) total += sums[sum];
    int64_t made = 0;
    constexpr int64_t lanes = sizeof total / sizeof total[0];
    for (int64_t lane = 0; lane < lanes; ++lane) made += static_cast<int64_t>(total[lane]);
    return made;
}

template <class Arithmetic>
int64_t timed_multiply_adds(int64_t rounds, int64_t pieces, int threads, double* seconds) {
    std::atomic<int64_t> made{0};
    *seconds = seconds_of(pieces, threads, [&](int64_t begin, int64_t end) {
        for (int64_t piece = begin; piece < end; ++piece) made += multiply_adds<Arithmetic>(rounds);
    });
    return made;
}

}  // namespace
}  // namespace quantgate

// Each returns the multiply-adds that `pieces` times `rounds` rounds made, and in *seconds how long they took; 0 where
// the processor has no instruction for them.
extern "C" int64_t quantgate_probe_float32(int64_t rounds, int64_t pieces, int threads, double* seconds) {
    return quantgate::timed_multiply_adds<quantgate::Float32>(rounds, pieces, threads, seconds);
}

extern "C" int64_t quantgate_probe_sixteen_bit(int64_t rounds, int64_t pieces, int threads, double* seconds) {
    return quantgate::timed_multiply_adds<quantgate::SixteenBit>(rounds, pieces, threads, seconds);
}

extern "C" int64_t quantgate_probe_int8(int64_t rounds, int64_t pieces, int threads, double* seconds) {
#if QUANTGATE_AVX512_VNNI
    return quantgate::timed_multiply_adds<quantgate::Int8Quads>(rounds, pieces, threads, seconds);
#else
    (void)rounds, (void)pieces, (void)threads;
    *seconds = 0.0;
    return 0;
#endif
}
