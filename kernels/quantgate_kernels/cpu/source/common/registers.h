// Numbers side by side as several registers of the processor. Compilers keep a vector type that is wider than a register in
// memory, and move its parts by hand; halves that are values of their own stay in registers.
#pragma once

#include <cstdint>
#include <cstring>

#include "common/intrinsics.h"

namespace quantgate {

#if defined(__AVX__)
constexpr int64_t REGISTER_BYTES = 32;
#else
constexpr int64_t REGISTER_BYTES = 16;
#endif

// Half: a register's vector type, or halves again. The operators are those of a vector type, of each number by itself.
template <class Half>
struct Halves {
    Half lower, upper;
};

// BYTES of numbers, as many registers as they take.
template <class Number, int64_t BYTES>
struct RegistersOf {
    using Type = Halves<typename RegistersOf<Number, BYTES / 2>::Type>;
};

template <class Number>
struct RegistersOf<Number, REGISTER_BYTES> {
    typedef Number Type __attribute__((vector_size(REGISTER_BYTES)));
};

template <class Number>
using Registers = typename RegistersOf<Number, 64>::Type;

// What is done with numbers in one register, or in halves.
template <class Numbers>
struct Work {
    static QUANTGATE_INLINED Numbers load(const uint8_t* from) {
        Numbers numbers;
        std::memcpy(&numbers, from, sizeof numbers);
        return numbers;
    }

    static QUANTGATE_INLINED void store(const Numbers& numbers, uint8_t* to) { std::memcpy(to, &numbers, sizeof numbers); }

    template <class Other>
    static QUANTGATE_INLINED Numbers of_bits(const Other& bits) {
        return (Numbers)bits;
    }

    template <class Other>
    static QUANTGATE_INLINED Numbers converted(const Other& numbers) {
        return __builtin_convertvector(numbers, Numbers);
    }

    // As many numbers of a type with fewer bits.
    template <class Narrow>
    static QUANTGATE_INLINED Numbers widened(const Narrow* from) {
        typedef Narrow Narrows __attribute__((vector_size(sizeof(Narrow) * sizeof(Numbers) / 4)));
        Narrows numbers;
        std::memcpy(&numbers, from, sizeof numbers);
        return converted(numbers);
    }
};

template <class Half>
struct Work<Halves<Half>> {
    static QUANTGATE_INLINED Halves<Half> load(const uint8_t* from) {
        return {Work<Half>::load(from), Work<Half>::load(from + sizeof(Half))};
    }

    static QUANTGATE_INLINED void store(const Halves<Half>& numbers, uint8_t* to) {
        Work<Half>::store(numbers.lower, to);
        Work<Half>::store(numbers.upper, to + sizeof(Half));
    }

    template <class Other>
    static QUANTGATE_INLINED Halves<Half> of_bits(const Other& bits) {
        return {Work<Half>::of_bits(bits.lower), Work<Half>::of_bits(bits.upper)};
    }

    template <class Other>
    static QUANTGATE_INLINED Halves<Half> converted(const Other& numbers) {
        return {Work<Half>::converted(numbers.lower), Work<Half>::converted(numbers.upper)};
    }

    template <class Narrow>
    static QUANTGATE_INLINED Halves<Half> widened(const Narrow* from) {
        return {Work<Half>::widened(from), Work<Half>::widened(from + sizeof(Half) / 4)};
    }
};

template <class Half>
QUANTGATE_INLINED Halves<Half> operator+(const Halves<Half>& left, const Halves<Half>& right) {
    return {left.lower + right.lower, left.upper + right.upper};
}

template <class Half>
QUANTGATE_INLINED Halves<Half> operator-(const Halves<Half>& left, const Halves<Half>& right) {
    return {left.lower - right.lower, left.upper - right.upper};
}

template <class Half>
QUANTGATE_INLINED Halves<Half> operator*(const Halves<Half>& left, const Halves<Half>& right) {
    return {left.lower * right.lower, left.upper * right.upper};
}

template <class Half>
QUANTGATE_INLINED Halves<Half> operator/(const Halves<Half>& left, const Halves<Half>& right) {
    return {left.lower / right.lower, left.upper / right.upper};
}

template <class Half>
QUANTGATE_INLINED Halves<Half> operator|(const Halves<Half>& left, const Halves<Half>& right) {
    return {left.lower | right.lower, left.upper | right.upper};
}

// With one number for all of them.
template <class Half, class Number>
QUANTGATE_INLINED Halves<Half> operator+(const Halves<Half>& left, Number right) {
    return {left.lower + right, left.upper + right};
}

template <class Half>
QUANTGATE_INLINED Halves<Half> operator+(float left, const Halves<Half>& right) {
    return right + left;
}

template <class Half, class Number>
QUANTGATE_INLINED Halves<Half> operator*(const Halves<Half>& left, Number right) {
    return {left.lower * right, left.upper * right};
}

template <class Half>
QUANTGATE_INLINED Halves<Half> operator*(float left, const Halves<Half>& right) {
    return right * left;
}

template <class Half>
QUANTGATE_INLINED Halves<Half> operator&(const Halves<Half>& left, uint32_t right) {
    return {left.lower & right, left.upper & right};
}

template <class Half>
QUANTGATE_INLINED Halves<Half> operator<<(const Halves<Half>& left, int bits) {
    return {left.lower << bits, left.upper << bits};
}

template <class Half>
QUANTGATE_INLINED Halves<Half> operator>>(const Halves<Half>& left, int bits) {
    return {left.lower >> bits, left.upper >> bits};
}

template <class Half, class Other>
QUANTGATE_INLINED Halves<Half>& operator+=(Halves<Half>& left, const Other& right) {
    return left = left + right;
}

template <class Half, class Other>
QUANTGATE_INLINED Halves<Half>& operator*=(Halves<Half>& left, const Other& right) {
    return left = left * right;
}

}  // namespace quantgate
