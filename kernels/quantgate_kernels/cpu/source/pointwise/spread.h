// A head's numbers spread over each other by an orthonormal Walsh-Hadamard matrix, in blocks of the largest power of two
// in their count. Products of two vectors stay what they are when both are spread, while an outlier is shared out over
// its block: a scale for the whole row then wastes fewer codes (QuaRot, Ashkboos et al. 2024, arXiv:2404.00456).
#pragma once

#include <cmath>
#include <cstdint>

namespace quantgate {

inline void spread(float* head, int64_t size) {
    const int64_t block = size & -size;
    for (int64_t stride = 1; stride < block; stride *= 2) {
        for (int64_t start = 0; start < size; start += 2 * stride) {
#pragma omp simd
            for (int64_t i = start; i < start + stride; ++i) {
                const float first = head[i], second = head[i + stride];
                head[i] = first + second;
                head[i + stride] = first - second;
            }
        }
    }
    const float factor = static_cast<float>(1.0 / std::sqrt(static_cast<double>(block)));
#pragma omp simd simdlen(16)
    for (int64_t d = 0; d < size; ++d) head[d] *= factor;
}

}  // namespace quantgate
