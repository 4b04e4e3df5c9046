// INT4 codes of 16 outputs as pairs of bfloat16, which holds a code less its zero exactly. Words of four codes; the `NUMBER`th
// of each 16-bit half of a step's word makes the pair.
#pragma once

#include <cstdint>

#include "common/intrinsics.h"
#include "common/lanes.h"
#include "common/number.h"
#include "products/code_pairs.h"

namespace quantgate {

#if QUANTGATE_AVX512

// bfloat16 of a whole number from -255 to 255.
constexpr BFloat16 whole_number(int number) {
    if (number == 0) return BFloat16{};
    int magnitude = number < 0 ? -number : number, exponent = 127 + 7;
    for (; magnitude < 128; magnitude *= 2) --exponent;
    return static_cast<BFloat16>((number < 0 ? 0x8000 : 0) | exponent << 7 | (magnitude & 0x7f));
}

// What the lowest five bits of a code's place in a register stand for.
struct NumberTable {
    BFloat16 of[32];
};

template <class NumberOf>
constexpr NumberTable number_table(NumberOf number_of) {
    NumberTable table{};
    for (int bits = 0; bits < 32; ++bits) table.of[bits] = whole_number(number_of(bits));
    return table;
}

// code - 8 for the codes 0..15; the bit above a code is its neighbour's, and makes no difference.
inline constexpr NumberTable NIBBLES = number_table([](int bits) { return (bits & 15) - 8; });
// A code less its zero, in two's complement.
inline constexpr NumberTable DIFFERENCES = number_table([](int bits) { return bits < 16 ? bits : bits - 32; });

// The numbers that a table has for the lower five bits of each 16-bit word, after these have moved down by BITS.
template <int BITS>
QUANTGATE_INLINED BitLanes look_up(const BitLanes& words, const BitLanes& table) {
    const auto places = BITS == 0 ? (__m512i)words : _mm512_srli_epi16((__m512i)words, BITS);
    return (BitLanes)_mm512_permutexvar_epi16(places, (__m512i)table);
}

class NibblePairs {
public:
    QUANTGATE_INLINED void load(const uint8_t* words) { words_ = load_bits(words); }

    template <int NUMBER>
    QUANTGATE_INLINED BitLanes pairs() const {
        return look_up<4 * NUMBER>(words_, table_);
    }

private:
    const BitLanes table_ = load_bits(NIBBLES.of);
    BitLanes words_;
};

class NibblePairsLessZeros {
public:
    // Each zero goes to all four bytes of its output's place.
    QUANTGATE_INLINED void load_zeros(const uint8_t* zeros) { zeros_ = bits_of(load_widened(zeros)) * 0x01010101u; }

    // Differences are bytes in two's complement: of nibbles 0 and 2 of each half word, then of 1 and 3.
    QUANTGATE_INLINED void load(const uint8_t* words) {
        const BitLanes codes = load_bits(words);
        even_ = differences(codes & 0x0f0f0f0fu);
        odd_ = differences(codes >> 4 & 0x0f0f0f0fu);
    }

    template <int NUMBER>
    QUANTGATE_INLINED BitLanes pairs() const {
        return look_up<NUMBER / 2 * 8>(NUMBER % 2 == 0 ? even_ : odd_, table_);
    }

private:
    QUANTGATE_INLINED BitLanes differences(const BitLanes& codes) const {
        return (BitLanes)_mm512_sub_epi8((__m512i)codes, (__m512i)zeros_);
    }

    const BitLanes table_ = load_bits(DIFFERENCES.of);
    BitLanes zeros_, even_, odd_;
};

#else

class NibblePairsLessZeros {
public:
    QUANTGATE_INLINED void load_zeros(const uint8_t* zeros) { zeros_ = load_widened(zeros); }

    QUANTGATE_INLINED void load(const uint8_t* words) { words_ = load_bits(words); }

    template <int NUMBER>
    QUANTGATE_INLINED BitLanes pairs() const {
        return pairs_of_numbers(ints_of_bits(words_ >> 4 * NUMBER & 15u) - zeros_,
                                ints_of_bits(words_ >> (16 + 4 * NUMBER) & 15u) - zeros_);
    }

protected:
    IntLanes zeros_;

private:
    BitLanes words_;
};

// Codes 0..15 that stand for code - 8.
class NibblePairs : public NibblePairsLessZeros {
public:
    QUANTGATE_INLINED NibblePairs() { zeros_ = IntLanes{} + 8; }
};

#endif

}  // namespace quantgate
