// Sixteen numbers of 32 bits as one value: one register with AVX-512, two with AVX2, four on Arm. Used where the compilers'
// own vectorisation falls short.
#pragma once

#include <cstdint>
#include <cstring>

#include "common/intrinsics.h"
#if !QUANTGATE_AVX512
#include "common/registers.h"
#endif

namespace quantgate {

constexpr int64_t LANES = 16;

typedef float EightLanes __attribute__((vector_size(32)));
typedef float FourLanes __attribute__((vector_size(16)));

#if QUANTGATE_AVX512

typedef float Lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t IntLanes __attribute__((vector_size(4 * LANES)));
typedef uint32_t BitLanes __attribute__((vector_size(4 * LANES)));

QUANTGATE_INLINED Lanes load(const float* from) {
    Lanes lanes;
    std::memcpy(&lanes, from, sizeof lanes);
    return lanes;
}

QUANTGATE_INLINED BitLanes load_bits(const void* from) {
    BitLanes lanes;
    std::memcpy(&lanes, from, sizeof lanes);
    return lanes;
}

QUANTGATE_INLINED void store(const Lanes& lanes, float* to) { std::memcpy(to, &lanes, sizeof lanes); }
QUANTGATE_INLINED void store_bits(const BitLanes& lanes, void* to) { std::memcpy(to, &lanes, sizeof lanes); }

QUANTGATE_INLINED BitLanes bits_of(const IntLanes& numbers) { return (BitLanes)numbers; }
QUANTGATE_INLINED IntLanes ints_of_bits(const BitLanes& bits) { return (IntLanes)bits; }
QUANTGATE_INLINED BitLanes bits_of(const Lanes& numbers) { return (BitLanes)numbers; }
QUANTGATE_INLINED Lanes floats_of_bits(const BitLanes& bits) { return (Lanes)bits; }
QUANTGATE_INLINED Lanes to_float(const IntLanes& numbers) { return __builtin_convertvector(numbers, Lanes); }

// Sixteen numbers of fewer bits.
template <class Narrow>
QUANTGATE_INLINED IntLanes load_widened(const Narrow* from) {
    typedef Narrow Narrows __attribute__((vector_size(LANES * sizeof(Narrow))));
    Narrows numbers;
    std::memcpy(&numbers, from, sizeof numbers);
    return __builtin_convertvector(numbers, IntLanes);
}

#else

using Lanes = Registers<float>;
using IntLanes = Registers<int32_t>;
using BitLanes = Registers<uint32_t>;

QUANTGATE_INLINED Lanes load(const float* from) { return Work<Lanes>::load(reinterpret_cast<const uint8_t*>(from)); }
QUANTGATE_INLINED BitLanes load_bits(const void* from) { return Work<BitLanes>::load(static_cast<const uint8_t*>(from)); }
QUANTGATE_INLINED void store(const Lanes& lanes, float* to) { Work<Lanes>::store(lanes, reinterpret_cast<uint8_t*>(to)); }
QUANTGATE_INLINED void store_bits(const BitLanes& lanes, void* to) {
    Work<BitLanes>::store(lanes, static_cast<uint8_t*>(to));
}

QUANTGATE_INLINED BitLanes bits_of(const IntLanes& numbers) { return Work<BitLanes>::of_bits(numbers); }
QUANTGATE_INLINED IntLanes ints_of_bits(const BitLanes& bits) { return Work<IntLanes>::of_bits(bits); }
QUANTGATE_INLINED BitLanes bits_of(const Lanes& numbers) { return Work<BitLanes>::of_bits(numbers); }
QUANTGATE_INLINED Lanes floats_of_bits(const BitLanes& bits) { return Work<Lanes>::of_bits(bits); }
QUANTGATE_INLINED Lanes to_float(const IntLanes& numbers) { return Work<Lanes>::converted(numbers); }

template <class Narrow>
QUANTGATE_INLINED IntLanes load_widened(const Narrow* from) {
    return Work<IntLanes>::widened(from);
}

#endif

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
