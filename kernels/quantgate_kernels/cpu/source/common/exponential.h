// exp in float32 without a call or a branch, so that compilers vectorise the loops that use it on any instruction set.
#pragma once

#include <cstdint>
#include <cstring>

namespace quantgate {

// e^x = 2^n * e^r with n = round(x / ln 2) and |r| <= ln(2) / 2; e^r by the polynomial of Cephes' expf (S. Moshier),
// error below 2 units in the last place. Below -87.3 it stays at the smallest normal number, above 88.7 it is infinite;
// a NaN stays one.
inline float exponential(float x) {
    constexpr float lowest = -87.336544f, highest = 89.0f;
    constexpr float log2_e = 1.44269504f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    // Added to a small number, it leaves the nearest integer in the lower bits of the sum.
    constexpr float integer_shift = 12582912.0f;

    x = x < lowest ? lowest : x;
    x = x > highest ? highest : x;
    const float shifted = x * log2_e + integer_shift;
    const float n = shifted - integer_shift;
    const float r = (x - n * ln2_high) - n * ln2_low;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;

    uint32_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    const uint32_t exponent = (bits + 127u) << 23;
    float power;
    std::memcpy(&power, &exponent, sizeof power);
    return p * power;
}

}  // namespace quantgate
