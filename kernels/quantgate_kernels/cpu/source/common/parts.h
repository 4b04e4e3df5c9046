// Numbers side by side as several registers of the processor. Compilers keep a vector type that is wider than a register in
// memory, and move its parts by hand; parts that are values of their own stay in registers.
#pragma once

#include <cstdint>
#include <cstring>

#include "common/intrinsics.h"

namespace quantgate {

#if defined(__AVX__)
constexpr int64_t PART_BYTES = 32;
#else
constexpr int64_t PART_BYTES = 16;
#endif

// 64 bytes. The operators are those of a vector type, of each number by itself.
template <class Number>
struct Parts {
    typedef Number Part __attribute__((vector_size(PART_BYTES)));
    static constexpr int64_t COUNT = 64 / PART_BYTES, NUMBERS = PART_BYTES / sizeof(Number);

    Part of[COUNT];
};

// parts: a function of a part's number.
template <class Number, class PartOf>
QUANTGATE_INLINED Parts<Number> parts(const PartOf& part_of) {
    Parts<Number> made;
    for (int64_t part = 0; part < Parts<Number>::COUNT; ++part) made.of[part] = part_of(part);
    return made;
}

template <class Number>
QUANTGATE_INLINED Parts<Number> load_parts(const void* from) {
    return parts<Number>([&](int64_t part) {
        typename Parts<Number>::Part numbers;
        std::memcpy(&numbers, static_cast<const uint8_t*>(from) + part * PART_BYTES, sizeof numbers);
        return numbers;
    });
}

template <class Number>
QUANTGATE_INLINED void store_parts(const Parts<Number>& numbers, void* to) {
    for (int64_t part = 0; part < Parts<Number>::COUNT; ++part) {
        std::memcpy(static_cast<uint8_t*>(to) + part * PART_BYTES, &numbers.of[part], PART_BYTES);
    }
}

// The same bits as numbers of another type.
template <class Number, class Other>
QUANTGATE_INLINED Parts<Number> parts_of_bits(const Parts<Other>& bits) {
    return parts<Number>([&](int64_t part) { return (typename Parts<Number>::Part)bits.of[part]; });
}

// As many numbers of a narrower type, converted.
template <class Number, class Narrow>
QUANTGATE_INLINED Parts<Number> widened(const Narrow* from) {
    typedef Narrow Narrows __attribute__((vector_size(PART_BYTES * sizeof(Narrow) / sizeof(Number))));
    return parts<Number>([&](int64_t part) {
        Narrows numbers;
        std::memcpy(&numbers, from + part * Parts<Number>::NUMBERS, sizeof numbers);
        return __builtin_convertvector(numbers, typename Parts<Number>::Part);
    });
}

template <class Number>
QUANTGATE_INLINED Parts<Number> operator+(const Parts<Number>& left, const Parts<Number>& right) {
    return parts<Number>([&](int64_t part) { return left.of[part] + right.of[part]; });
}

template <class Number>
QUANTGATE_INLINED Parts<Number> operator-(const Parts<Number>& left, const Parts<Number>& right) {
    return parts<Number>([&](int64_t part) { return left.of[part] - right.of[part]; });
}

template <class Number>
QUANTGATE_INLINED Parts<Number> operator*(const Parts<Number>& left, const Parts<Number>& right) {
    return parts<Number>([&](int64_t part) { return left.of[part] * right.of[part]; });
}

template <class Number>
QUANTGATE_INLINED Parts<Number> operator/(const Parts<Number>& left, const Parts<Number>& right) {
    return parts<Number>([&](int64_t part) { return left.of[part] / right.of[part]; });
}

template <class Number>
QUANTGATE_INLINED Parts<Number> operator|(const Parts<Number>& left, const Parts<Number>& right) {
    return parts<Number>([&](int64_t part) { return left.of[part] | right.of[part]; });
}

// A number for all: of the parts' type, whatever it is given as.
template <class Number>
struct Same {
    typedef Number Type;
};

template <class Number>
QUANTGATE_INLINED Parts<Number> operator+(const Parts<Number>& left, typename Same<Number>::Type right) {
    return parts<Number>([&](int64_t part) { return left.of[part] + right; });
}

template <class Number>
QUANTGATE_INLINED Parts<Number> operator+(typename Same<Number>::Type left, const Parts<Number>& right) {
    return right + left;
}

template <class Number>
QUANTGATE_INLINED Parts<Number> operator*(const Parts<Number>& left, typename Same<Number>::Type right) {
    return parts<Number>([&](int64_t part) { return left.of[part] * right; });
}

template <class Number>
QUANTGATE_INLINED Parts<Number> operator*(typename Same<Number>::Type left, const Parts<Number>& right) {
    return right * left;
}

template <class Number>
QUANTGATE_INLINED Parts<Number> operator&(const Parts<Number>& left, typename Same<Number>::Type right) {
    return parts<Number>([&](int64_t part) { return left.of[part] & right; });
}

template <class Number>
QUANTGATE_INLINED Parts<Number> operator<<(const Parts<Number>& left, int bits) {
    return parts<Number>([&](int64_t part) { return left.of[part] << bits; });
}

template <class Number>
QUANTGATE_INLINED Parts<Number> operator>>(const Parts<Number>& left, int bits) {
    return parts<Number>([&](int64_t part) { return left.of[part] >> bits; });
}

template <class Number, class Other>
QUANTGATE_INLINED Parts<Number>& operator+=(Parts<Number>& left, const Other& right) {
    return left = left + right;
}

template <class Number, class Other>
QUANTGATE_INLINED Parts<Number>& operator*=(Parts<Number>& left, const Other& right) {
    return left = left * right;
}

}  // namespace quantgate
