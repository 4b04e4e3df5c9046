// A row of inputs as two digits of 8 bits each, for products with codes of 8 bits whose error has a bound.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "common/number.h"
#include "products/byte_row.h"
#include "step/workspace.h"

namespace quantgate {

// The row's part in how far its approximate logits can be off; see head_screen.h, which multiplies it by the outputs' parts.
struct RowBound {
    float per_loss, per_length, always;
};

// The greatest code that two digits hold, of which the lower one is in -128..127.
constexpr float LARGEST_TWO_DIGITS = 127.0f * 256.0f + 127.0f;
// Logits that may be beyond it are not screened: neither they nor their bounds must overflow.
constexpr double LARGEST_SCREENED = 1e37;
// Far below any number that decides, and far above what is lost where float32 has no normal number left. Instructions for
// 16-bit products take smaller numbers for 0.
constexpr double SMALLEST_COUNTED = 0x1p-100;

// As a float that is not less, and stays so after a few roundings.
inline float rounded_up(double number) {
    return static_cast<float>((number > SMALLEST_COUNTED ? number : SMALLEST_COUNTED) * (1.0 + 0x1p-16));
}

inline double relative_error_of(int64_t roundings) {
    constexpr double unit = 0x1p-24;
    return static_cast<double>(roundings) * unit / (1.0 - static_cast<double>(roundings) * unit);
}

// Writes rows 2 index (upper digits) and 2 index + 1 (lower ones) of `digits`, whose sums add up to approximate logits.
inline RowBound write_digits(const BFloat16* row, int64_t size, float longest, const RowBuffer& digits, int64_t index) {
    uint8_t* upper = digits.numbers + 2 * index * digits.row_bytes;
    uint8_t* lower = upper + digits.row_bytes;
    float largest = 0.0f;
    double squares = 0.0;
#pragma omp simd simdlen(16) reduction(max : largest) reduction(+ : squares)
    for (int64_t i = 0; i < size; ++i) {
        const float number = to_float(row[i]), magnitude = number < 0.0f ? -number : number;
        largest = magnitude > largest ? magnitude : largest;
        squares += static_cast<double>(number) * number;
    }
    const double length = std::sqrt(squares);
    // False for a row with a NaN too.
    const bool screened = length * longest < LARGEST_SCREENED && length < LARGEST_SCREENED;
    const float unit = largest / LARGEST_TWO_DIGITS;
    const float scale = screened && unit > static_cast<float>(SMALLEST_COUNTED) ? unit : 0.0f;
    digits.scales[2 * index] = 256.0f * scale;
    digits.scales[2 * index + 1] = scale;
    if (!screened) {
        std::memset(upper, BYTE_ZERO, size);
        std::memset(lower, BYTE_ZERO, size);
        const float any = std::numeric_limits<float>::infinity();
        return {1.0f, 1.0f, any};
    }
    const float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
    // Added to a number of magnitude below 2^22, it leaves the nearest integer in the lower bits of the sum.
    constexpr float integer_shift = 12582912.0f;
    constexpr uint32_t both_zero = BYTE_ZERO << 8 | BYTE_ZERO;
    double coded_squares = 0.0, lost_squares = 0.0;
#pragma omp simd simdlen(16) reduction(+ : coded_squares, lost_squares)
    for (int64_t i = 0; i < size; ++i) {
        const float number = to_float(row[i]);
        float code = number * inverse;
        code = code > LARGEST_TWO_DIGITS ? LARGEST_TWO_DIGITS : code;
        code = code < -LARGEST_TWO_DIGITS ? -LARGEST_TWO_DIGITS : code;
        const float shifted = code + integer_shift;
        uint32_t bits;
        std::memcpy(&bits, &shifted, sizeof bits);
        const uint32_t both = bits + both_zero;
        upper[i] = static_cast<uint8_t>(both >> 8);
        lower[i] = static_cast<uint8_t>(both);
        const double coded = static_cast<double>(shifted - integer_shift) * scale, lost = number - coded;
        coded_squares += coded * coded;
        lost_squares += lost * lost;
    }
    const double coded = std::sqrt(coded_squares), terms = static_cast<double>(size);
    // Each digit's sum is made a float, scaled, and added to the other's and to the bound. The lower digits' length is at
    // most 128 sqrt(terms), and the upper ones' that much more than both digits'.
    const double screen_error = relative_error_of(8) * (coded + 256.0 * scale * std::sqrt(terms));
    const double sum_error = relative_error_of(size + 1) * length;
    return {rounded_up(coded + screen_error), rounded_up(std::sqrt(lost_squares) + sum_error + screen_error),
            rounded_up(terms * SMALLEST_COUNTED * (1.0 + length + longest))};
}

}  // namespace quantgate
