// What the online softmax of a decode keeps for each query head, and how that of one part of a context is joined to
// that of the parts before it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "attention/attention_tile.h"
#include "common/lanes.h"
#include "common/number.h"

namespace quantgate {

// sums: weighted values, [heads][row]; maxima: the largest score; totals: of the weights, which are relative to it.
struct DecodeSums {
    float *sums, *maxima, *totals;
    int64_t row;

    // All heads of a sequence, in `size` floats.
    DecodeSums(float* memory, const AttentionShape& shape)
        : sums(memory), maxima(sums + shape.heads * padded_to_lanes(shape.head_dim)), totals(maxima + shape.heads),
          row(padded_to_lanes(shape.head_dim)) {}

    // Whole cache lines: threads write to neighbours.
    static int64_t size(const AttentionShape& shape) {
        return padded_to_lanes(shape.heads * (padded_to_lanes(shape.head_dim) + 2));
    }

    void clear(int64_t heads) const {
        std::fill_n(sums, heads * row, 0.0f);
        std::fill_n(maxima, heads, -std::numeric_limits<float>::infinity());
        std::fill_n(totals, heads, 0.0f);
    }

    // Joins the next part's sums to these. `power` of a difference of scores is the ratio of their weights. Never
    // inlined: compilers may round a sum of two products in two ways, and all callers need the same bits.
    __attribute__((noinline)) void join(const DecodeSums& next, int64_t heads, float (*power)(float)) const {
        for (int64_t head = 0; head < heads; ++head) {
            const float largest = next.maxima[head] > maxima[head] ? next.maxima[head] : maxima[head];
            const float own = power(maxima[head] - largest), others = power(next.maxima[head] - largest);
            float *to = sums + head * row, *from = next.sums + head * row;
            for (int64_t d = 0; d < row; d += LANES) store(load(to + d) * own + load(from + d) * others, to + d);
            totals[head] = totals[head] * own + next.totals[head] * others;
            maxima[head] = largest;
        }
    }

    // out: the token's row, all heads. Rounded once.
    template <class Number>
    void finish(int64_t heads, int64_t head_dim, Number* out) const {
        for (int64_t head = 0; head < heads; ++head) {
            const float inverse = 1.0f / totals[head];
            const float* from = sums + head * row;
            Number* to = out + head * head_dim;
#pragma omp simd simdlen(16)
            for (int64_t d = 0; d < head_dim; ++d) to[d] = rounded<Number>(from[d] * inverse);
        }
    }
};

}  // namespace quantgate
