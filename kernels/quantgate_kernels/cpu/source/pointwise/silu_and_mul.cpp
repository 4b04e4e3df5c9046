// out = silu(gate) * up with silu(g) = g / (1 + e^-g); a row holds all gates, then all ups.
// Bound: reads both halves once, writes one; about 20 operations per element for the exponential.
#include "common/exponential.h"
#include "common/number.h"
#include "common/parallel.h"

namespace quantgate {
namespace {

template <class Number>
void silu_and_mul(const Number* gate_up, Number* out, int64_t rows, int64_t width, int threads) {
    parallel_for(rows, rows_worth_a_thread(2 * width), threads, [=](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
            const Number* gates = gate_up + row * 2 * width;
            const Number* ups = gates + width;
            Number* into = out + row * width;
#pragma omp simd simdlen(16)
            for (int64_t i = 0; i < width; ++i) {
                const float gate = to_float(gates[i]);
                into[i] = rounded<Number>(gate / (1.0f + exponential(-gate)) * to_float(ups[i]));
            }
        }
    });
}

}  // namespace
}  // namespace quantgate

#define QUANTGATE_SILU_AND_MUL(NAME, NUMBER)                                                                         \
    extern "C" void NAME(const NUMBER* gate_up, NUMBER* out, int64_t rows, int64_t width, int threads) {             \
        quantgate::silu_and_mul(gate_up, out, rows, width, threads);                                                 \
    }

QUANTGATE_SILU_AND_MUL(quantgate_silu_and_mul_bfloat16, quantgate::BFloat16)
QUANTGATE_SILU_AND_MUL(quantgate_silu_and_mul_float32, float)
