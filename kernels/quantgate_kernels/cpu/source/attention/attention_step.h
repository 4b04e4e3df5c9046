// Attention of a whole step as tasks (attention_plan.h). A result does not depend on who computes it, when, how decodes
// are shared out, or on what else there is.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "attention/attention_plan.h"
#include "attention/decode_sequence.h"
#include "attention/prefill_block.h"
#include "attention/sequences.h"

namespace quantgate {

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
        decode_ = std::make_unique<DecodeScratch>(shape);
        prefill_ = std::make_unique<Prefill>(shape);
    }

    DecodeScratch& decode() { return *decode_; }
    Prefill& prefill() { return *prefill_; }

private:
    int64_t heads_ = 0, kv_heads_ = 0, head_dim_ = 0;
    std::unique_ptr<DecodeScratch> decode_;
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

    // likely_next: what the thread is likely to claim then; what that reads first is asked for early. A wrong guess, or one
    // beyond the last task, does no harm.
    void run(int64_t task, int64_t likely_next, AttentionStepScratch<Number>& scratch) const {
        scratch.fit(shape);
        const TileSlots after = first_tile(likely_next);
        if (key_scales != nullptr) {
            run_over(CachedRows<int8_t>{static_cast<const int8_t*>(keys), key_scales},
                     CachedRows<int8_t>{static_cast<const int8_t*>(values), value_scales}, plan[task], after, scratch);
        } else {
            run_over(CachedRows<Number>{static_cast<const Number*>(keys), nullptr},
                     CachedRows<Number>{static_cast<const Number*>(values), nullptr}, plan[task], after, scratch);
        }
    }

private:
    const int32_t* table_of(int64_t sequence) const { return sequences.block_tables + sequence * shape.max_blocks; }

    // Empty where the task is none that begins a decode.
    TileSlots first_tile(int64_t task) const {
        TileSlots slots;
        slots.tokens = 0;
        if (task >= tasks() || !plan[task].decodes || plan[task].share > 0) return slots;
        const int64_t sequence = plan[task].sequence, context = sequences.context_lens[sequence];
        const int64_t first = shape.first_seen(context);
        slots.tokens = std::min(TILE, context - first);
        find_slots(table_of(sequence), first, slots.tokens, shape.block_size, slots.of);
        return slots;
    }

    template <class Stored>
    void run_over(const CachedRows<Stored>& key_rows, const CachedRows<Stored>& value_rows, const AttentionTask& task,
                  const TileSlots& after, AttentionStepScratch<Number>& scratch) const {
        const int64_t sequence = task.sequence, context = sequences.context_lens[sequence];
        const int64_t row = sequences.first_row(sequence) + task.first_row;
        const Number* queries = q + row * shape.heads * shape.head_dim;
        Number* results = out + row * out_row;
        const int32_t* table = table_of(sequence);
        if (task.decodes) {
            const DecodedSequence<Number, Stored> decoded{queries, key_rows, value_rows, table, context, shape, after};
            return decode(decoded, task, scratch.decode(), results);
        }
        const PrefillRows rows{table,     context, sequences.new_rows(sequence), task.first_row,
                               task.rows, task.kv_head};
        prefill_block(queries, key_rows, value_rows, rows, shape, scratch.prefill(), results, out_row);
    }

    template <class Stored>
    void decode(const DecodedSequence<Number, Stored>& sequence, const AttentionTask& task, DecodeScratch& scratch,
                Number* results) const {
        const auto decoder = sequence_decoder<Number, Stored>(shape.head_dim);
        if (task.shared == AttentionTask::WHOLE) {
            return decoder.decode(sequence, scratch, results);
        }
        const SharedDecode shared = plan.shared(task.shared);
        decoder.sum_share(sequence, task.share, shared.shares, scratch, shared.sums);
        if (shared.finished->fetch_add(1, std::memory_order_acq_rel) + 1 < shared.shares) return;
        decoder.join_parts(sequence, shared.sums, scratch, results);
        // For the next layer, which begins when all threads have met.
        shared.finished->store(0, std::memory_order_relaxed);
    }
};

}  // namespace quantgate
