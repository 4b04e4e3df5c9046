// x . weight^T with every result summed in one fixed order, whatever the number of rows, of outputs and of threads: the
// products of the deterministic mode.
// A strip of outputs is expanded once and multiplied by all rows, a tile of rows and outputs at a time.
// Bound: reads the weight once, as it is stored, and 2 * rows * inputs * outputs operations.
#include <algorithm>
#include <vector>

#include "fixed_order/dot_tile.h"
#include "common/number.h"
#include "common/parallel.h"
#include "fixed_order/stored_rows.h"

namespace quantgate {
namespace {

// Outputs that are expanded together; with a row they stay in the processor's nearer caches.
constexpr int64_t STRIP = 16;
constexpr int64_t STRIPS_PER_RANGE = 2;

template <class Operand, int64_t ROWS>
void multiply_strip(const Operand* rows, const Operand* strip, int64_t outputs, int64_t width, float* sums) {
    int64_t output = 0;
    for (; output + TILE_SIDE <= outputs; output += TILE_SIDE) {
        dot_tile<Operand, ROWS, TILE_SIDE>(rows, strip + output * width, width, sums + output, STRIP);
    }
    for (; output < outputs; ++output) {
        dot_tile<Operand, ROWS, 1>(rows, strip + output * width, width, sums + output, STRIP);
    }
}

template <class Operand>
using MultiplyStrip = void (*)(const Operand*, const Operand*, int64_t, int64_t, float*);

template <class Operand>
constexpr MultiplyStrip<Operand> BY_ROWS[] = {nullptr, multiply_strip<Operand, 1>, multiply_strip<Operand, 2>,
                                              multiply_strip<Operand, 3>, multiply_strip<Operand, 4>};

template <class Number, class Weight, class Result>
void multiply(const Number* x, const Weight& weight, Result* out, int64_t rows, int64_t outputs, int threads) {
    using Operand = Multiplied<Number>;
    constexpr int64_t numbers = DotStep<Operand>::NUMBERS;
    const int64_t width = (weight.inputs + numbers - 1) / numbers * numbers;
    std::vector<Operand> padded_x;
    const Operand* operands = rows_of(DenseRows<Number>{x, weight.inputs}, 0, rows, width, padded_x);
    const int64_t strips = (outputs + STRIP - 1) / STRIP;
    parallel_for(strips, STRIPS_PER_RANGE, threads, [&](int64_t begin, int64_t end) {
        std::vector<Operand> expanded;
        float sums[TILE_SIDE * STRIP];
        for (int64_t first = begin * STRIP; first < std::min(end * STRIP, outputs); first += STRIP) {
            const int64_t count = std::min(STRIP, outputs - first);
            const Operand* strip = rows_of(weight, first, count, width, expanded);
            for (int64_t row = 0; row < rows; row += TILE_SIDE) {
                const int64_t tile_rows = std::min(TILE_SIDE, rows - row);
                BY_ROWS<Operand>[tile_rows](operands + row * width, strip, count, width, sums);
                for (int64_t r = 0; r < tile_rows; ++r) {
                    Result* into = out + (row + r) * outputs + first;
                    for (int64_t o = 0; o < count; ++o) {
                        into[o] = rounded<Result>(sums[r * STRIP + o] * weight.scale(first + o));
                    }
                }
            }
        }
    });
}

// A weight with groups: its scales are float16, or of the type of x.
template <template <class> class Rows, class Number, class Code>
void multiply_groups(const Number* x, const Code* codes, const void* scales, const Code* zeros, int half_scales,
                     Number* out, int64_t rows, int64_t inputs, int64_t outputs, int64_t group_size, int threads) {
    if (half_scales) {
        const Rows<Float16> weight{codes, static_cast<const Float16*>(scales), zeros, inputs, group_size};
        return multiply(x, weight, out, rows, outputs, threads);
    }
    const Rows<Number> weight{codes, static_cast<const Number*>(scales), zeros, inputs, group_size};
    multiply(x, weight, out, rows, outputs, threads);
}

}  // namespace
}  // namespace quantgate

// x [rows][inputs], out [rows][outputs]; logits are not rounded to the type of x.
#define QUANTGATE_FIXED_ORDER(NAME, NUMBER)                                                                          \
    extern "C" void quantgate_fixed_order_dense_##NAME(const NUMBER* x, const NUMBER* weight, NUMBER* out,           \
                                                       int64_t rows, int64_t inputs, int64_t outputs, int threads) { \
        quantgate::multiply(x, quantgate::DenseRows<NUMBER>{weight, inputs}, out, rows, outputs, threads);           \
    }                                                                                                                \
    extern "C" void quantgate_fixed_order_logits_##NAME(const NUMBER* x, const NUMBER* weight, float* out,           \
                                                        int64_t rows, int64_t inputs, int64_t outputs,               \
                                                        int threads) {                                               \
        quantgate::multiply(x, quantgate::DenseRows<NUMBER>{weight, inputs}, out, rows, outputs, threads);           \
    }                                                                                                                \
    extern "C" void quantgate_fixed_order_int8_##NAME(const NUMBER* x, const int8_t* codes, const NUMBER* scales,    \
                                                      NUMBER* out, int64_t rows, int64_t inputs, int64_t outputs,    \
                                                      int threads) {                                                 \
        quantgate::multiply(x, quantgate::Int8Rows<NUMBER>{codes, scales, inputs}, out, rows, outputs, threads);     \
    }                                                                                                                \
    extern "C" void quantgate_fixed_order_int4_##NAME(                                                               \
        const NUMBER* x, const uint8_t* packed, const void* scales, const uint8_t* zeros, NUMBER* out,               \
        int half_scales, int64_t rows, int64_t inputs, int64_t outputs, int64_t group_size, int threads) {           \
        quantgate::multiply_groups<quantgate::Int4Rows>(x, packed, scales, zeros, half_scales, out, rows, inputs,    \
                                                        outputs, group_size, threads);                               \
    }                                                                                                                \
    extern "C" void quantgate_fixed_order_int8_groups_##NAME(                                                        \
        const NUMBER* x, const int8_t* codes, const void* scales, const int8_t* zeros, NUMBER* out, int half_scales, \
        int64_t rows, int64_t inputs, int64_t outputs, int64_t group_size, int threads) {                            \
        quantgate::multiply_groups<quantgate::Int8GroupRows>(x, codes, scales, zeros, half_scales, out, rows, inputs,\
                                                             outputs, group_size, threads);                          \
    }

QUANTGATE_FIXED_ORDER(bfloat16, quantgate::BFloat16)
QUANTGATE_FIXED_ORDER(float32, float)
