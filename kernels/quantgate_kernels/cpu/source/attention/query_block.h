// The queries of a block: rows of one sequence, each with all heads that share a key head, packed into lanes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "attention/aligned_array.h"
#include "attention/attention_tile.h"
#include "attention/transpose.h"

namespace quantgate {

// Lanes that a block aims at: enough of them share a tile of keys to make its copy cheap, and few enough for tasks that
// can be spread over threads. They do not depend on the threads: the choice of blocks is seen in a result's last bits.
constexpr int64_t LANES_PER_BLOCK = 96;

inline int64_t rows_per_block(const AttentionShape& shape) {
    return std::max<int64_t>(1, LANES_PER_BLOCK / shape.group());
}

// Lanes whose sums share registers, `count` times LANES; the last ones may repeat what the lane before them sees.
// queries: [key_row][lanes] units; sums: [padded head_dim][lanes]; maxima, totals, and the first and last position that
// each lane sees: [lanes].
template <class Arithmetic>
struct QueryGroup {
    int64_t count, used;
    int64_t first_position, last_position;
    typename Arithmetic::Unit* queries;
    float *sums, *maxima, *totals;
    int32_t *first_seen, *last_seen;

    int64_t lanes() const { return count * LANES; }
};

template <class Arithmetic>
class QueryBlock {
public:
    explicit QueryBlock(const AttentionShape& shape)
        : key_row_(Arithmetic::key_row(shape.head_dim)), sum_rows_(padded_to_lanes(shape.head_dim)),
          capacity_((rows_per_block(shape) * shape.group() + WIDEST - 1) / WIDEST * WIDEST),
          queries_(capacity_ * key_row_), query_rows_(LANES * key_row_), sums_(capacity_ * sum_rows_),
          maxima_(capacity_), totals_(capacity_), result_rows_(LANES * sum_rows_), first_seen_(capacity_),
          last_seen_(capacity_) {}

    // q: the block's first row, all heads. Nothing is summed yet.
    template <class Number>
    void load(const Number* q, int64_t first_position, int64_t rows, int64_t kv_head, const AttentionShape& shape) {
        group_ = shape.group();
        first_position_ = first_position;
        used_ = rows * group_;
        const int64_t padded = padded_to_lanes(used_);
        std::fill_n(sums_.data(), padded * sum_rows_, 0.0f);
        std::fill_n(totals_.data(), padded, 0.0f);
        std::fill_n(maxima_.data(), padded, -std::numeric_limits<float>::infinity());
        for (int64_t lane = 0; lane < padded; ++lane) {
            const int64_t position = position_of(std::min(lane, used_ - 1));
            first_seen_.data()[lane] = static_cast<int32_t>(shape.first_seen(position + 1));
            last_seen_.data()[lane] = static_cast<int32_t>(position);
        }
        for (int64_t i = 0; i < groups(); ++i) load_group(q, group(i), i * WIDEST, kv_head, shape);
    }

    int64_t groups() const { return (used_ + WIDEST - 1) / WIDEST; }

    QueryGroup<Arithmetic> group(int64_t i) const {
        const int64_t first = i * WIDEST, used = std::min(WIDEST, used_ - first);
        return {padded_to_lanes(used) / LANES,
                used,
                position_of(first),
                position_of(first + used - 1),
                queries_.data() + first * key_row_,
                sums_.data() + first * sum_rows_,
                maxima_.data() + first,
                totals_.data() + first,
                first_seen_.data() + first,
                last_seen_.data() + first};
    }

    // sums / totals, rounded once; out: the block's first row, all heads; rows are out_row numbers apart.
    template <class Number>
    void store(int64_t kv_head, const AttentionShape& shape, Number* out, int64_t out_row) const {
        float* rows = result_rows_.data();
        for (int64_t i = 0; i < groups(); ++i) {
            const QueryGroup<Arithmetic> own = group(i);
            for (int64_t first = 0; first < own.used; first += LANES) {
                for (int64_t d = 0; d < sum_rows_; d += LANES) {
                    transpose(own.sums + d * own.lanes() + first, own.lanes(), rows + d, sum_rows_);
                }
                for (int64_t j = 0; j < std::min(LANES, own.used - first); ++j) {
                    Number* to = out + offset_of(i * WIDEST + first + j, kv_head, shape, out_row);
                    const float *from = rows + j * sum_rows_, inverse = 1.0f / own.totals[first + j];
#pragma omp simd simdlen(16)
                    for (int64_t d = 0; d < shape.head_dim; ++d) to[d] = rounded<Number>(from[d] * inverse);
                }
            }
        }
    }

private:
    static constexpr int64_t WIDEST = Arithmetic::GROUP * LANES;

    int64_t key_row_ = 0, sum_rows_ = 0, capacity_ = 0, group_ = 1, first_position_ = 0, used_ = 0;
    AlignedArray<typename Arithmetic::Unit> queries_, query_rows_;
    AlignedArray<float> sums_, maxima_, totals_, result_rows_;
    AlignedArray<int32_t> first_seen_, last_seen_;

    int64_t position_of(int64_t lane) const { return first_position_ + lane / group_; }

    // Where a lane's head begins among rows that are `row` numbers apart.
    int64_t offset_of(int64_t lane, int64_t kv_head, const AttentionShape& shape, int64_t row) const {
        return lane / group_ * row + (kv_head * group_ + lane % group_) * shape.head_dim;
    }

    template <class Number>
    void load_group(const Number* q, const QueryGroup<Arithmetic>& own, int64_t first_lane, int64_t kv_head,
                    const AttentionShape& shape) {
        const int64_t query_row = shape.heads * shape.head_dim;
        for (int64_t first = 0; first < own.lanes(); first += LANES) {
            for (int64_t j = 0; j < LANES; ++j) {
                const int64_t lane = first_lane + first + j;
                const Number* row = lane < used_ ? q + offset_of(lane, kv_head, shape, query_row) : nullptr;
                Arithmetic::copy_row(row, shape.head_dim, query_rows_.data() + j * key_row_);
            }
            for (int64_t unit = 0; unit < key_row_; unit += LANES) {
                transpose(query_rows_.data() + unit, key_row_, own.queries + unit * own.lanes() + first, own.lanes());
            }
        }
    }
};

}  // namespace quantgate
