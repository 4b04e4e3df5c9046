// The activation types and int8 codes, and their way to float32 and back: all arithmetic is in float32, and each result
// is rounded once.
#pragma once

#include <cstdint>
#include <cstring>

namespace quantgate {

// An enumeration and not a class: compilers keep scalars in vector registers, and classes on the stack.
enum class BFloat16 : uint16_t {};

inline float to_float(float value) { return value; }

inline float to_float(int8_t code) { return static_cast<float>(code); }

inline float to_float(BFloat16 value) {
    const uint32_t wide = static_cast<uint32_t>(value) << 16;
    float result;
    std::memcpy(&result, &wide, sizeof result);
    return result;
}

// IEEE 754's 16-bit format: scales of checkpoints.
enum class Float16 : uint16_t {};

inline float to_float(Float16 value) {
    const uint32_t bits = static_cast<uint32_t>(value), magnitude = bits & 0x7fffu;
    uint32_t wide = magnitude << 13;
    float result;
    std::memcpy(&result, &wide, sizeof result);
    // The exponent's other bias: exact for numbers below the normal ones too.
    result *= 0x1p112f;
    std::memcpy(&wide, &result, sizeof wide);
    wide |= (magnitude >= 0x7c00u ? 0x7f800000u : 0u) | (bits & 0x8000u) << 16;
    std::memcpy(&result, &wide, sizeof result);
    return result;
}

template <class Number>
Number rounded(float value);

template <>
inline float rounded<float>(float value) {
    return value;
}

// To the nearest, ties to even. A NaN keeps its upper bits and is made quiet, because rounding could carry it to
// infinity.
template <>
inline BFloat16 rounded<BFloat16>(float value) {
    uint32_t wide;
    std::memcpy(&wide, &value, sizeof wide);
    const uint32_t nearest = (wide + 0x7fffu + ((wide >> 16) & 1u)) >> 16;
    const uint32_t quiet = (wide >> 16) | 0x40u;
    return static_cast<BFloat16>(value == value ? nearest : quiet);
}

}  // namespace quantgate
