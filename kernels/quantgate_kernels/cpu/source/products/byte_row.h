// A row of inputs as unsigned bytes for QUADS: symmetric codes with one scale for the row, each stored as code + 128.
#pragma once

#include <cstdint>
#include <cstring>

#include "common/number.h"

namespace quantgate {

constexpr float LARGEST_BYTE_CODE = 127.0f;
constexpr int32_t BYTE_ZERO = 128;

// scale = largest magnitude / 127, code = number / scale to the nearest, ties to even; returns the scale. A row of zeros
// has scale 0. One with a NaN or an infinity has NaN for a scale: what is computed from it stays visible.
template <class Number>
float quantize_to_bytes(const Number* row, int64_t size, uint8_t* bytes) {
    float largest = 0.0f, not_finite = 0.0f;
#pragma omp simd simdlen(16) reduction(max : largest) reduction(+ : not_finite)
    for (int64_t i = 0; i < size; ++i) {
        const float number = to_float(row[i]), magnitude = number < 0.0f ? -number : number;
        largest = magnitude > largest ? magnitude : largest;
        // 0 for every finite number, else NaN.
        not_finite += number * 0.0f;
    }
    const float scale = largest / LARGEST_BYTE_CODE + not_finite;
    // Nothing is divided by a scale of zero; that of a row with a NaN makes NaNs, whatever the codes are.
    const float divisor = scale > 0.0f ? scale : 1.0f;
    // Added to a number of magnitude below 2^22, it leaves the nearest integer in the lower bits of the sum.
    constexpr float integer_shift = 12582912.0f;
#pragma omp simd simdlen(16)
    for (int64_t i = 0; i < size; ++i) {
        float code = to_float(row[i]) / divisor;
        code = code > LARGEST_BYTE_CODE ? LARGEST_BYTE_CODE : code;
        code = code < -LARGEST_BYTE_CODE ? -LARGEST_BYTE_CODE : code;
        const float shifted = code + integer_shift;
        uint32_t bits;
        std::memcpy(&bits, &shifted, sizeof bits);
        bytes[i] = static_cast<uint8_t>(bits + BYTE_ZERO);
    }
    return scale;
}

}  // namespace quantgate
