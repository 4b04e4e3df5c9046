// y = x / sqrt(mean(x^2) + eps) * weight per row (Zhang, Sennrich 2019, arXiv:1910.07467), after adding the residual.
// Bound: reads x, residual and weight once, writes total and y once.
#include "common/number.h"
#include "common/parallel.h"
#include "pointwise/norm_row.h"

namespace quantgate {
namespace {

// The sum of squares is that of the rounded total, which is what goes on as residual.
template <class Number>
float add_residual(const Number* x, const Number* residual, Number* total, int64_t width) {
    float squares = 0.0f;
#pragma omp simd simdlen(16) reduction(+ : squares)
    for (int64_t i = 0; i < width; ++i) {
        const Number sum = rounded<Number>(to_float(x[i]) + to_float(residual[i]));
        total[i] = sum;
        squares += to_float(sum) * to_float(sum);
    }
    return squares;
}

template <class Number>
void rms_norm(const Number* x, const Number* residual, const Number* weight, float eps, Number* normalised,
              Number* total, int64_t rows, int64_t width, int threads) {
    parallel_for(rows, rows_worth_a_thread(width), threads, [=](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
            const Number* in = x + row * width;
            float squares;
            if (residual != nullptr) {
                squares = add_residual(in, residual + row * width, total + row * width, width);
                in = total + row * width;
            } else {
                squares = sum_of_squares(in, width);
            }
            scale_row(in, norm_factor(squares, width, eps), weight, width, normalised + row * width);
        }
    });
}

}  // namespace
}  // namespace quantgate

// residual and total: both null, or both [rows, width].
#define QUANTGATE_RMS_NORM(NAME, NUMBER)                                                                             \
    extern "C" void NAME(const NUMBER* x, const NUMBER* residual, const NUMBER* weight, float eps,                   \
                         NUMBER* normalised, NUMBER* total, int64_t rows, int64_t width, int threads) {              \
        quantgate::rms_norm(x, residual, weight, eps, normalised, total, rows, width, threads);                      \
    }

QUANTGATE_RMS_NORM(quantgate_rms_norm_bfloat16, quantgate::BFloat16)
QUANTGATE_RMS_NORM(quantgate_rms_norm_float32, float)
