// Sixteen float32 numbers as one value, by the vector types that GCC and Clang have on every processor: one register
// with AVX-512, two with AVX2, four on Arm. Used where the compilers' own vectorisation falls short.
#pragma once

#include <cstdint>
#include <cstring>

namespace quantgate {

constexpr int64_t LANES = 16;

typedef float Lanes __attribute__((vector_size(4 * LANES)));
typedef float EightLanes __attribute__((vector_size(32)));
typedef float FourLanes __attribute__((vector_size(16)));

inline Lanes load(const float* from) {
    Lanes lanes;
    std::memcpy(&lanes, from, sizeof lanes);
    return lanes;
}

inline void store(const Lanes& lanes, float* to) { std::memcpy(to, &lanes, sizeof lanes); }

// The sum of all lanes, by halves.
inline float sum_of(const Lanes& lanes) {
    EightLanes eight[2];
    std::memcpy(eight, &lanes, sizeof lanes);
    const EightLanes half = eight[0] + eight[1];
    FourLanes four[2];
    std::memcpy(four, &half, sizeof half);
    const FourLanes quarter = four[0] + four[1];
    return (quarter[0] + quarter[2]) + (quarter[1] + quarter[3]);
}

inline int64_t padded_to_lanes(int64_t numbers) { return (numbers + LANES - 1) / LANES * LANES; }

}  // namespace quantgate
