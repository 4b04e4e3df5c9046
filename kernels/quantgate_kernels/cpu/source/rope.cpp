// Half-rotation rope (Su et al. 2021, arXiv:2104.09864) of queries and keys, and the write of keys and values into the
// paged cache, in one pass: (a, b) -> (a cos - b sin, b cos + a sin) over the halves of a head.
// Bound: reads qkv once, writes queries, keys and values once.
#include <algorithm>

#include "number.h"
#include "parallel.h"

namespace quantgate {
namespace {

template <class Number>
void rotate(const Number* head, const float* cosines, const float* sines, int64_t half, Number* out) {
#pragma omp simd simdlen(16)
    for (int64_t i = 0; i < half; ++i) {
        const float first = to_float(head[i]), second = to_float(head[half + i]);
        out[i] = rounded<Number>(first * cosines[i] - second * sines[i]);
        out[half + i] = rounded<Number>(second * cosines[i] + first * sines[i]);
    }
}

template <class Number>
void rope_and_write_kv(const Number* qkv, const float* cosines, const float* sines, const int64_t* slots,
                       Number* queries, Number* keys, Number* values, int64_t rows, int64_t heads, int64_t kv_heads,
                       int64_t head_dim, int threads) {
    const int64_t all_heads = heads + 2 * kv_heads, kv_width = kv_heads * head_dim, half = head_dim / 2;
    parallel_for(rows, rows_worth_a_thread(all_heads * head_dim), threads, [=](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
            const Number* head = qkv + row * all_heads * head_dim;
            const float* row_cosines = cosines + row * head_dim;
            const float* row_sines = sines + row * head_dim;
            Number* query = queries + row * heads * head_dim;
            for (int64_t h = 0; h < heads; ++h, head += head_dim, query += head_dim) {
                rotate(head, row_cosines, row_sines, half, query);
            }
            Number* key = keys + slots[row] * kv_width;
            for (int64_t h = 0; h < kv_heads; ++h, head += head_dim, key += head_dim) {
                rotate(head, row_cosines, row_sines, half, key);
            }
            std::copy(head, head + kv_width, values + slots[row] * kv_width);
        }
    });
}

}  // namespace
}  // namespace quantgate

#define QUANTGATE_ROPE(NAME, NUMBER)                                                                                 \
    extern "C" void NAME(const NUMBER* qkv, const float* cosines, const float* sines, const int64_t* slots,          \
                         NUMBER* queries, NUMBER* keys, NUMBER* values, int64_t rows, int64_t heads,                 \
                         int64_t kv_heads, int64_t head_dim, int threads) {                                          \
        quantgate::rope_and_write_kv(qkv, cosines, sines, slots, queries, keys, values, rows, heads, kv_heads,       \
                                     head_dim, threads);                                                             \
    }

QUANTGATE_ROPE(quantgate_rope_and_write_kv_bfloat16, quantgate::BFloat16)
QUANTGATE_ROPE(quantgate_rope_and_write_kv_float32, float)
