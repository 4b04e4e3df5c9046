// RMS norm of one row: y = x / sqrt(mean(x^2) + eps) * weight (Zhang, Sennrich 2019, arXiv:1910.07467), in float32.
#pragma once

#include <cmath>
#include <cstdint>

#include "common/number.h"

namespace quantgate {

template <class Number>
float sum_of_squares(const Number* x, int64_t width) {
    float squares = 0.0f;
#pragma omp simd simdlen(16) reduction(+ : squares)
    for (int64_t i = 0; i < width; ++i) squares += to_float(x[i]) * to_float(x[i]);
    return squares;
}

// What a row is multiplied by, before its weight.
inline float norm_factor(float squares, int64_t width, float eps) {
    return 1.0f / std::sqrt(squares / static_cast<float>(width) + eps);
}

template <class Number, class Weight, class Out>
void scale_row(const Number* x, float factor, const Weight* weight, int64_t width, Out* out) {
#pragma omp simd simdlen(16)
    for (int64_t i = 0; i < width; ++i) out[i] = rounded<Out>(to_float(x[i]) * factor * to_float(weight[i]));
}

}  // namespace quantgate
