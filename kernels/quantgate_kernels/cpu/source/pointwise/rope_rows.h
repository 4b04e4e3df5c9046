// Half-rotation rope (Su et al. 2021, arXiv:2104.09864) of a row's queries and keys, and the write of its keys and values
// into the paged cache: (a, b) -> (a cos - b sin, b cos + a sin) over the halves of a head.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/number.h"
#include "pointwise/int8_row.h"
#include "pointwise/spread.h"

namespace quantgate {

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

// The rows of a step: [rows, (heads + 2 kv_heads) * head_dim], and their slots. positions: which row of the angles, [...,
// head_dim], is each row's; null where they stand in the order of the rows.
template <class Number>
struct RopeRows {
    const Number* qkv;
    const float *cosines, *sines;
    const int64_t *positions, *slots;
    int64_t count, heads, kv_heads, head_dim;
};

// Heads begin..end.
struct RopeHeads {
    int64_t begin, end;
};

// One row's query heads and key heads of these ranges; queries: [rows, heads * head_dim]. wide: scratch for a head.
template <class Number, class Cache>
void rope_heads(const RopeRows<Number>& rows, int64_t row, RopeHeads query_heads, RopeHeads key_heads, Number* queries,
                const Cache& cache, float* wide) {
    const int64_t size = rows.head_dim;
    const int64_t angles = (rows.positions == nullptr ? row : rows.positions[row]) * size;
    const Turn<Number> turn{rows.cosines + angles, rows.sines + angles, size / 2};
    const Number* query_row = rows.qkv + row * (rows.heads + 2 * rows.kv_heads) * size;
    const Number* key_row = query_row + rows.heads * size;
    const Number* value_row = key_row + rows.kv_heads * size;
    for (int64_t h = query_heads.begin; h < query_heads.end; ++h) {
        cache.write_query(query_row + h * size, turn, queries + (row * rows.heads + h) * size, wide);
    }
    const int64_t place = rows.slots[row] * rows.kv_heads;
    for (int64_t h = key_heads.begin; h < key_heads.end; ++h) {
        cache.write_key(key_row + h * size, turn, place + h, wide);
        cache.write_value(value_row + h * size, size, place + h, wide);
    }
}

}  // namespace quantgate
