// A row of float32 as int8 codes with one scale.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

namespace quantgate {

// Symmetric: scale = largest magnitude / 127, code = value / scale to the nearest, ties to even; returns the scale.
// A row of zeros has scale 0. One with a NaN or an infinity has that for a scale and codes 0, so that it is a NaN when
// it is read. The clamp is for scales so small that they have lost digits.
inline float quantize_row(const float* row, int64_t size, int8_t* codes) {
    // Without their sign, the bits of floats are in the order of their magnitudes, a NaN above all.
    int32_t largest_bits = 0;
#pragma omp simd simdlen(16) reduction(max : largest_bits)
    for (int64_t d = 0; d < size; ++d) {
        int32_t bits;
        std::memcpy(&bits, row + d, sizeof bits);
        bits &= 0x7fffffff;
        largest_bits = bits > largest_bits ? bits : largest_bits;
    }
    float largest;
    std::memcpy(&largest, &largest_bits, sizeof largest);
    const float scale = largest / 127.0f;
    if (!(scale > 0.0f && scale <= std::numeric_limits<float>::max())) {
        std::fill(codes, codes + size, int8_t{0});
        return scale;
    }
    // Added to a small number, it leaves the nearest integer in the lower bits of the sum.
    constexpr float integer_shift = 12582912.0f;
#pragma omp simd simdlen(16)
    for (int64_t d = 0; d < size; ++d) {
        float code = (row[d] / scale + integer_shift) - integer_shift;
        code = code > 127.0f ? 127.0f : code;
        code = code < -127.0f ? -127.0f : code;
        codes[d] = static_cast<int8_t>(static_cast<int32_t>(code));
    }
    return scale;
}

}  // namespace quantgate
