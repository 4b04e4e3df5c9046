// The rows that a product takes: norms of the residual, or what the phase before left, in the coding that the weight's
// form multiplies.
#pragma once

#include <cstring>

#include "common/team.h"
#include "pointwise/norm_row.h"
#include "products/byte_row.h"
#include "step/workspace.h"

namespace quantgate {

// The residual's rows, normed and rounded to bfloat16.
struct NormedRows {
    const float *residual, *weight;
    int64_t size;
    float eps;

    void write(int64_t row, BFloat16* to) const {
        const float* from = residual + row * size;
        scale_row(from, norm_factor(sum_of_squares(from, size), size, eps), weight, size, to);
    }
};

// The same rows with number order[i] of each at place i. scratch has room for one row as it comes.
template <class Source>
struct ReorderedRows {
    const Source& source;
    const int32_t* order;
    BFloat16* scratch;
    int64_t size;

    void write(int64_t row, BFloat16* to) const {
        source.write(row, scratch);
        for (int64_t i = 0; i < size; ++i) to[i] = scratch[order[i]];
    }
};

// Where a member puts rows that it prepares: one buffer for all members, and one of its own for few rows. scratch is one
// row in bfloat16, on its way to codes.
struct RowPlaces {
    RowBuffer shared, own;
    BFloat16* scratch;
};

// Rows first..last of `source` in the coding of `form`.
template <class Source>
void write_rows(const Source& source, Form form, int64_t size, int64_t first, int64_t last, const RowBuffer& to,
                BFloat16* scratch) {
    for (int64_t row = first; row < last; ++row) {
        if (form == Form::QUADS) {
            source.write(row, scratch);
            to.scales[row] = quantize_to_bytes(scratch, size, to.numbers + row * to.row_bytes);
        } else {
            source.write(row, to.row(row));
            to.clear_tail(row, size);
        }
    }
}

// All rows of `source` for a product with a weight of that form; each member's view of them.
template <class Source>
InputRows inputs_of(const Member& member, const Source& source, Form form, int64_t rows, const RowPlaces& places) {
    if (rows <= ROWS_FOR_EACH_MEMBER) {
        write_rows(source, form, source.size, 0, rows, places.own, places.scratch);
        return places.own.view(rows);
    }
    member.split(rows, [&](int64_t first, int64_t last) {
        write_rows(source, form, source.size, first, last, places.shared, places.scratch);
    });
    member.meet();
    return places.shared.view(rows);
}

// Rows that stand in bfloat16 already, one after the other.
struct FinishedRows {
    BFloat16* numbers;
    int64_t size;

    BFloat16* row(int64_t index) const { return numbers + index * size; }
    void write(int64_t row, BFloat16* to) const { std::memcpy(to, numbers + row * size, size * sizeof(BFloat16)); }
};

// The same of rows that are finished: as they stand, where the form reads them so and they end with a whole step of it.
inline InputRows inputs_of(const Member& member, const FinishedRows& finished, Form form, int64_t rows,
                           const RowPlaces& places) {
    const bool as_they_are = form != Form::QUADS && finished.size % step_inputs(form) == 0;
    if (!as_they_are) return inputs_of<FinishedRows>(member, finished, form, rows, places);
    const auto size = static_cast<int64_t>(finished.size * sizeof(BFloat16));
    return {reinterpret_cast<const uint8_t*>(finished.numbers), nullptr, size, rows};
}

}  // namespace quantgate
