// The stored forms of a weight as rows of numbers to multiply, one row per output. Each number depends on its place in the
// weight alone.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "common/number.h"

namespace quantgate {

// As `rounded`, in half the steps, for products of two 16-bit numbers: where such a product is not a number, its lower
// bits are 0, and rounding cannot carry into its sign.
template <class Operand>
Operand rounded_product(float value) {
    if constexpr (std::is_same_v<Operand, float>) return value;
    uint32_t wide;
    std::memcpy(&wide, &value, sizeof wide);
    return static_cast<Operand>((wide + 0x7fffu + ((wide >> 16) & 1u)) >> 16);
}

// A whole number of at most 8 bits times a scale, which float32 holds exactly.
template <class Operand, class Scale>
Operand rounded_scaled(int number, float scale) {
    const float value = static_cast<float>(number) * scale;
    if constexpr (std::is_same_v<Scale, Float16>) return rounded<Operand>(value);
    return rounded_product<Operand>(value);
}

// For values that 16 bits hold exactly.
template <class Operand>
Operand exactly(float value) {
    if constexpr (std::is_same_v<Operand, float>) return value;
    uint32_t wide;
    std::memcpy(&wide, &value, sizeof wide);
    return static_cast<Operand>(wide >> 16);
}

// numbers [out][in], as they are multiplied; activations are such rows too.
template <class Number>
struct DenseRows {
    const Number* numbers;
    int64_t inputs;

    template <class Operand>
    void expand(int64_t row, Operand* to) const {
        const Number* from = numbers + row * inputs;
#pragma omp simd simdlen(16)
        for (int64_t i = 0; i < inputs; ++i) to[i] = rounded<Operand>(to_float(from[i]));
    }

    float scale(int64_t) const { return 1.0f; }
};

// codes [out][in] and one scale per output, which multiplies the finished sum: a code is exact in 16 bits, code * scale
// would not be.
template <class Number>
struct Int8Rows {
    const int8_t* codes;
    const Number* scales;
    int64_t inputs;

    template <class Operand>
    void expand(int64_t row, Operand* to) const {
        const int8_t* from = codes + row * inputs;
#pragma omp simd simdlen(16)
        for (int64_t i = 0; i < inputs; ++i) to[i] = exactly<Operand>(static_cast<float>(from[i]));
    }

    float scale(int64_t row) const { return to_float(scales[row]); }
};

// packed [out][in / group][group / 2]: byte j of a group holds code j in its low half and code j + group / 2 in its high
// half; scales and zeros [out][in / group], or no zeros: 8 throughout. (code - zero) * scale is rounded once.
template <class Scale>
struct Int4Rows {
    const uint8_t* packed;
    const Scale* scales;
    const uint8_t* zeros;
    int64_t inputs, group_size;

    template <class Operand>
    void expand(int64_t row, Operand* to) const {
        const int64_t half = group_size / 2, groups = inputs / group_size;
        const uint8_t* from = packed + row * groups * half;
        for (int64_t group = row * groups; group < (row + 1) * groups; ++group, from += half, to += group_size) {
            const float scale = to_float(scales[group]);
            const int zero = zeros == nullptr ? 8 : zeros[group];
#pragma omp simd simdlen(16)
            for (int64_t i = 0; i < half; ++i) {
                to[i] = rounded_scaled<Operand, Scale>((from[i] & 15) - zero, scale);
                to[half + i] = rounded_scaled<Operand, Scale>((from[i] >> 4) - zero, scale);
            }
        }
    }

    float scale(int64_t) const { return 1.0f; }
};

// codes [out][in]; scales and zeros [out][in / group], or no zeros: 0 throughout. (code - zero) * scale is rounded once.
template <class Scale>
struct Int8GroupRows {
    const int8_t* codes;
    const Scale* scales;
    const int8_t* zeros;
    int64_t inputs, group_size;

    template <class Operand>
    void expand(int64_t row, Operand* to) const {
        const int64_t groups = inputs / group_size;
        const int8_t* from = codes + row * inputs;
        for (int64_t group = row * groups; group < (row + 1) * groups; ++group, from += group_size, to += group_size) {
            const float scale = to_float(scales[group]);
            const int zero = zeros == nullptr ? 0 : zeros[group];
#pragma omp simd simdlen(16)
            for (int64_t i = 0; i < group_size; ++i) to[i] = rounded_scaled<Operand, Scale>(from[i] - zero, scale);
        }
    }

    float scale(int64_t) const { return 1.0f; }
};

// `count` rows from `first` on, `width` apart and padded with zeros: in place where they stand so, else in the buffer.
template <class Operand, class Rows>
const Operand* rows_of(const Rows& stored, int64_t first, int64_t count, int64_t width, std::vector<Operand>& buffer) {
    if constexpr (std::is_same_v<Rows, DenseRows<Operand>>) {
        if (width == stored.inputs) return stored.numbers + first * width;
    }
    buffer.resize(count * width);
    for (int64_t row = 0; row < count; ++row) stored.expand(first + row, &buffer[row * width]);
    return buffer.data();
}

}  // namespace quantgate
