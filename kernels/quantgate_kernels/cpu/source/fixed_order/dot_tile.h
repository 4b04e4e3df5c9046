// Sums of products along pairs of rows, each in one fixed order: 16 partial sums that take their numbers from front to
// back, then added up by halves. However many pairs stand side by side in a tile, and wherever a pair stands in it, its
// sum has the same bits.
#pragma once

#include <cstdint>
#include <cstring>

#include "common/lanes.h"
#include "common/number.h"

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

namespace quantgate {

// One step along two rows: NUMBERS of each are multiplied and added to the partial sums.
template <class Operand>
struct DotStep;

template <>
struct DotStep<float> {
    static constexpr int64_t NUMBERS = LANES;
    using Vector = Lanes;

    static void add(Lanes& sums, const Vector& left, const Vector& right) { sums += left * right; }
};

// The type in which numbers are multiplied: 16 bits where one instruction multiplies pairs of them and adds the products
// in float32, which no compiler makes of a loop; else float32.
#ifdef __AVX512BF16__
template <>
struct DotStep<BFloat16> {
    static constexpr int64_t NUMBERS = 2 * LANES;
    using Vector = __m512bh;

    static void add(Lanes& sums, const Vector& left, const Vector& right) {
        sums = (Lanes)_mm512_dpbf16_ps((__m512)sums, left, right);
    }
};

template <class Number>
using Multiplied = Number;
#else
template <class Number>
using Multiplied = float;
#endif

// Rows and outputs of the largest tile, whose partial sums stay in registers.
#ifdef __AVX512F__
constexpr int64_t TILE_SIDE = 4;
#else
constexpr int64_t TILE_SIDE = 2;
#endif

template <class Operand>
typename DotStep<Operand>::Vector load_operands(const Operand* from) {
    typename DotStep<Operand>::Vector vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
}

// ROWS rows by OUTPUTS outputs, all `width` long, a multiple of NUMBERS: sums[r * pitch + o].
template <class Operand, int64_t ROWS, int64_t OUTPUTS>
void dot_tile(const Operand* rows, const Operand* outputs, int64_t width, float* sums, int64_t pitch) {
    using Step = DotStep<Operand>;
    Lanes partial[ROWS][OUTPUTS] = {};
    for (int64_t i = 0; i < width; i += Step::NUMBERS) {
        typename Step::Vector weights[OUTPUTS];
        for (int64_t o = 0; o < OUTPUTS; ++o) weights[o] = load_operands(outputs + o * width + i);
        for (int64_t r = 0; r < ROWS; ++r) {
            const typename Step::Vector row = load_operands(rows + r * width + i);
            for (int64_t o = 0; o < OUTPUTS; ++o) Step::add(partial[r][o], row, weights[o]);
        }
    }
    for (int64_t r = 0; r < ROWS; ++r) {
        for (int64_t o = 0; o < OUTPUTS; ++o) sums[r * pitch + o] = sum_of(partial[r][o]);
    }
}

}  // namespace quantgate
