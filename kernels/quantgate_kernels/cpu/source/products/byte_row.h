// A row of inputs as unsigned bytes for QUADS: symmetric codes with one scale for the row, each stored as code + 128.
#pragma once

#include <cstdint>
#include <cstring>

#include "common/number.h"

namespace quantgate {

constexpr float LARGEST_BYTE_CODE = 127.0f;
constexpr int32_t BYTE_ZERO = 128;

// scale = largest magnitude / 127, code = number / scale to the nearest, ties to even; returns the scale. A row of
// zeros has scale 0. One with a NaN or an infinity has NaN for a scale: what is computed from it stays visible.
// No quotient needs a clamp: the least magnitude of bfloat16, 2^-133, makes a scale of 516 of float32's least steps, so
// that a scale has lost less than a thousandth to rounding, and 127.13 is still nearest to 127.
inline float quantize_to_bytes(const BFloat16* row, int64_t size, uint8_t* bytes) {
    // Without their sign, the bits of numbers are in the order of their magnitudes, infinity and NaN above all.
    uint16_t largest_bits = 0;
#pragma omp simd reduction(max : largest_bits)
    for (int64_t i = 0; i < size; ++i) {
        const auto bits = static_cast<uint16_t>(static_cast<uint16_t>(row[i]) & 0x7fffu);
        largest_bits = bits > largest_bits ? bits : largest_bits;
    }
    const float largest = to_float(static_cast<BFloat16>(largest_bits));
    // The difference is 0 for every finite number, else NaN.
    const float scale = largest / LARGEST_BYTE_CODE + (largest - largest);
    // Nothing is divided by a scale of zero; that of a row with a NaN makes NaNs, whatever the codes are.
    const float divisor = scale > 0.0f ? scale : 1.0f;
    // Added to a number of magnitude below 2^22, it leaves the nearest integer in the lower bits of the sum.
    constexpr float integer_shift = 12582912.0f;
#pragma omp simd simdlen(16)
    for (int64_t i = 0; i < size; ++i) {
        const float shifted = to_float(row[i]) / divisor + integer_shift;
        uint32_t bits;
        std::memcpy(&bits, &shifted, sizeof bits);
        bytes[i] = static_cast<uint8_t>(bits + BYTE_ZERO);
    }
    return scale;
}

}  // namespace quantgate
