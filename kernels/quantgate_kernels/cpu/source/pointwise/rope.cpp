// Half-rotation rope (Su et al. 2021, arXiv:2104.09864) of queries and keys, and the write of keys and values into the
// paged cache, in one pass: (a, b) -> (a cos - b sin, b cos + a sin) over the halves of a head.
// Bound: reads qkv once, writes queries, keys and values once.
#include <algorithm>
#include <vector>

#include "pointwise/int8_row.h"
#include "common/number.h"
#include "common/parallel.h"
#include "pointwise/spread.h"

namespace quantgate {
namespace {

// The angles of a position, for half the numbers of a head.
template <class Number>
struct Turn {
    const float *cosines, *sines;
    int64_t half;

    template <class Out>
    void rotate(const Number* head, Out* out) const {
#pragma omp simd simdlen(16)
        for (int64_t i = 0; i < half; ++i) {
            const float first = to_float(head[i]), second = to_float(head[half + i]);
            out[i] = rounded<Out>(first * cosines[i] - second * sines[i]);
            out[half + i] = rounded<Out>(second * cosines[i] + first * sines[i]);
        }
    }
};

// Where rows of keys and values go; a place is slot * key heads + key head.
template <class Number>
struct PlainRows {
    Number *keys, *values;

    void write_query(const Number* head, const Turn<Number>& turn, Number* query, float*) const {
        turn.rotate(head, query);
    }

    void write_key(const Number* head, const Turn<Number>& turn, int64_t place, float*) const {
        turn.rotate(head, keys + place * 2 * turn.half);
    }

    void write_value(const Number* head, int64_t head_dim, int64_t place, float*) const {
        std::copy(head, head + head_dim, values + place * head_dim);
    }
};

// The rotated key is quantized as it is in float32: rounded to 16 bits first, it would be rounded twice. Keys are spread,
// and so are the queries that look for them.
template <class Number>
struct Int8Rows {
    int8_t *keys, *values;
    float *key_scales, *value_scales;

    void write_query(const Number* head, const Turn<Number>& turn, Number* query, float* wide) const {
        turn.rotate(head, wide);
        spread(wide, 2 * turn.half);
        for (int64_t d = 0; d < 2 * turn.half; ++d) query[d] = rounded<Number>(wide[d]);
    }

    void write_key(const Number* head, const Turn<Number>& turn, int64_t place, float* wide) const {
        turn.rotate(head, wide);
        spread(wide, 2 * turn.half);
        key_scales[place] = quantize_row(wide, 2 * turn.half, keys + place * 2 * turn.half);
    }

    void write_value(const Number* head, int64_t head_dim, int64_t place, float* wide) const {
        for (int64_t d = 0; d < head_dim; ++d) wide[d] = to_float(head[d]);
        value_scales[place] = quantize_row(wide, head_dim, values + place * head_dim);
    }
};

// The rows of a step: [rows, (heads + 2 kv_heads) * head_dim], their angles [rows, head_dim], and their slots.
template <class Number>
struct Rows {
    const Number* qkv;
    const float *cosines, *sines;
    const int64_t* slots;
    int64_t count, heads, kv_heads, head_dim;
};

template <class Number, class Cache>
void rope_and_write_kv(const Rows<Number>& rows, Number* queries, const Cache& cache, int threads) {
    const int64_t size = rows.head_dim, all_heads = rows.heads + 2 * rows.kv_heads;
    parallel_for(rows.count, rows_worth_a_thread(all_heads * size), threads, [&, size](int64_t begin, int64_t end) {
        std::vector<float> wide(size);
        for (int64_t row = begin; row < end; ++row) {
            const Turn<Number> turn{rows.cosines + row * size, rows.sines + row * size, size / 2};
            const Number* head = rows.qkv + row * all_heads * size;
            Number* query = queries + row * rows.heads * size;
            for (int64_t h = 0; h < rows.heads; ++h, head += size, query += size) {
                cache.write_query(head, turn, query, wide.data());
            }
            const int64_t place = rows.slots[row] * rows.kv_heads;
            for (int64_t h = 0; h < rows.kv_heads; ++h, head += size) {
                cache.write_key(head, turn, place + h, wide.data());
            }
            for (int64_t h = 0; h < rows.kv_heads; ++h, head += size) {
                cache.write_value(head, size, place + h, wide.data());
            }
        }
    });
}

// The cache takes codes where it has scales, and else numbers of the rows' type.
template <class Number>
void rope_and_write_kv(const Rows<Number>& rows, Number* queries, void* keys, void* values, float* key_scales,
                       float* value_scales, int threads) {
    if (key_scales != nullptr) {
        const Int8Rows<Number> cache{static_cast<int8_t*>(keys), static_cast<int8_t*>(values), key_scales,
                                     value_scales};
        return rope_and_write_kv(rows, queries, cache, threads);
    }
    const PlainRows<Number> cache{static_cast<Number*>(keys), static_cast<Number*>(values)};
    rope_and_write_kv(rows, queries, cache, threads);
}

}  // namespace
}  // namespace quantgate

#define QUANTGATE_ROPE(NAME, NUMBER)                                                                                 \
    extern "C" void NAME(const NUMBER* qkv, const float* cosines, const float* sines, const int64_t* slots,          \
                         NUMBER* queries, void* keys, void* values, float* key_scales, float* value_scales,          \
                         int64_t rows, int64_t heads, int64_t kv_heads, int64_t head_dim, int threads) {             \
        quantgate::rope_and_write_kv<NUMBER>({qkv, cosines, sines, slots, rows, heads, kv_heads, head_dim}, queries, \
                                             keys, values, key_scales, value_scales, threads);                       \
    }

QUANTGATE_ROPE(quantgate_rope_and_write_kv_bfloat16, quantgate::BFloat16)
QUANTGATE_ROPE(quantgate_rope_and_write_kv_float32, float)
