// Attention of a whole step as tasks that threads claim one by one: decodes by sequence and key heads, prefills by
// sequence, key head and block of rows. A task's result does not depend on who runs it, when, or on what else there is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "attention/decode_sequence.h"
#include "attention/prefill_block.h"
#include "attention/sequences.h"

namespace quantgate {

// Rows `first_row`..`first_row + rows` of a sequence's new ones; a decode has one.
struct AttentionTask {
    int64_t cost;
    int32_t sequence, first_row, rows;
    HeadRange kv_heads;
    bool decodes;
};

// What layers share: they have the same sequences and heads. Windows may differ; the plan's own only weighs the tasks.
class AttentionPlan {
public:
    // Lists a step's tasks in place of those before, the heaviest first, so that what runs last is short. `threads`
    // decides how decodes are cut, which changes no bit.
    void list(const Sequences& sequences, const AttentionShape& shape, int threads) {
        tasks_.clear();
        const int64_t heads_per_task = key_heads_per_task(sequences.count, shape.kv_heads, threads);
        for (int64_t sequence = 0; sequence < sequences.count; ++sequence) {
            const int64_t rows = sequences.new_rows(sequence), context = sequences.context_lens[sequence];
            if (rows == 1) {
                add_decode(sequence, context, heads_per_task, shape);
            } else {
                add_prefill(sequence, context, rows, shape);
            }
        }
        std::sort(tasks_.begin(), tasks_.end(), [](const AttentionTask& a, const AttentionTask& b) {
            return std::tie(b.cost, a.sequence, a.first_row, a.kv_heads.begin) <
                   std::tie(a.cost, b.sequence, b.first_row, b.kv_heads.begin);
        });
    }

    int64_t tasks() const { return static_cast<int64_t>(tasks_.size()); }
    const AttentionTask& operator[](int64_t task) const { return tasks_[task]; }

private:
    // Decoding multiplies in float32 and adds across lanes for one query at a time: about as much longer for each key.
    static constexpr int64_t DECODE_COST = 8;

    std::vector<AttentionTask> tasks_;

    void add_decode(int64_t sequence, int64_t context, int64_t heads_per_task, const AttentionShape& shape) {
        const int64_t seen = context - shape.first_seen(context);
        for (int64_t head = 0; head < shape.kv_heads; head += heads_per_task) {
            tasks_.push_back({seen * heads_per_task * shape.group() * DECODE_COST, static_cast<int32_t>(sequence), 0, 1,
                              {head, head + heads_per_task}, true});
        }
    }

    void add_prefill(int64_t sequence, int64_t context, int64_t new_rows, const AttentionShape& shape) {
        const int64_t most = rows_per_block(shape);
        for (int64_t first = 0; first < new_rows; first += most) {
            const int64_t rows = std::min(most, new_rows - first), end = context - new_rows + first + rows;
            const int64_t seen = end - shape.first_seen(end - rows + 1);
            for (int64_t head = 0; head < shape.kv_heads; ++head) {
                tasks_.push_back({seen * rows * shape.group(), static_cast<int32_t>(sequence),
                                  static_cast<int32_t>(first), static_cast<int32_t>(rows), {head, head + 1}, false});
            }
        }
    }
};

// One for each thread, for any number of steps: it grows when heads of another shape come.
template <class Number>
class AttentionStepScratch {
public:
    using Prefill = PrefillScratch<typename ArithmeticOf<Number>::Type>;

    void fit(const AttentionShape& shape) {
        if (decode_ != nullptr && shape.heads == heads_ && shape.kv_heads == kv_heads_ && shape.head_dim == head_dim_) {
            return;
        }
        heads_ = shape.heads, kv_heads_ = shape.kv_heads, head_dim_ = shape.head_dim;
        decode_ = std::make_unique<AttentionScratch>(shape);
        prefill_ = std::make_unique<Prefill>(shape);
    }

    AttentionScratch& decode() { return *decode_; }
    Prefill& prefill() { return *prefill_; }

private:
    int64_t heads_ = 0, kv_heads_ = 0, head_dim_ = 0;
    std::unique_ptr<AttentionScratch> decode_;
    std::unique_ptr<Prefill> prefill_;
};

// One layer of a step. q: [rows of the step, heads, head_dim]; rows of out are out_row numbers apart. The cache holds
// codes where it has scales, and else numbers of the queries' type.
template <class Number>
struct AttentionStep {
    const AttentionPlan& plan;
    Sequences sequences;
    AttentionShape shape;
    const Number* q;
    const void *keys, *values;
    const float *key_scales, *value_scales;
    Number* out;
    int64_t out_row;

    int64_t tasks() const { return plan.tasks(); }

    void run(int64_t task, AttentionStepScratch<Number>& scratch) const {
        scratch.fit(shape);
        if (key_scales != nullptr) {
            run_over(CachedRows<int8_t>{static_cast<const int8_t*>(keys), key_scales},
                     CachedRows<int8_t>{static_cast<const int8_t*>(values), value_scales}, plan[task], scratch);
        } else {
            run_over(CachedRows<Number>{static_cast<const Number*>(keys), nullptr},
                     CachedRows<Number>{static_cast<const Number*>(values), nullptr}, plan[task], scratch);
        }
    }

private:
    template <class Stored>
    void run_over(const CachedRows<Stored>& key_rows, const CachedRows<Stored>& value_rows, const AttentionTask& task,
                  AttentionStepScratch<Number>& scratch) const {
        const int64_t sequence = task.sequence, context = sequences.context_lens[sequence];
        const int64_t row = sequences.first_row(sequence) + task.first_row;
        const Number* queries = q + row * shape.heads * shape.head_dim;
        Number* results = out + row * out_row;
        const int32_t* table = sequences.block_tables + sequence * shape.max_blocks;
        if (task.decodes) {
            decode_sequence_for<Number, Stored>(shape.head_dim)(queries, key_rows, value_rows, table, context,
                                                                task.kv_heads, shape, scratch.decode(), results);
            return;
        }
        const PrefillRows rows{table,     context, sequences.new_rows(sequence), task.first_row,
                               task.rows, task.kv_heads.begin};
        prefill_block(queries, key_rows, value_rows, rows, shape, scratch.prefill(), results, out_row);
    }
};

}  // namespace quantgate
