// How the attention of a step is cut into tasks that threads claim one by one: decodes by sequence, long ones by parts
// of their context; prefills by sequence, key head and block of rows.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "attention/aligned_array.h"
#include "attention/context_parts.h"
#include "attention/decode_sums.h"
#include "attention/query_block.h"
#include "attention/sequences.h"

namespace quantgate {

// Rows `first_row`..`first_row + rows` of a sequence's new ones, for one key head; a decode has one row and all heads.
struct AttentionTask {
    static constexpr int32_t WHOLE = -1;

    int64_t cost;
    int32_t sequence, first_row, rows, kv_head;
    bool decodes;
    // Of a decode that several tasks share: which of these it is, and its share of the context.
    int32_t shared, share;
};

// A decode that several tasks share. Each leaves the sums of its parts, and the last one to finish joins them.
struct SharedDecode {
    float* sums;
    std::atomic<int32_t>* finished;
    int32_t shares;
};

// What layers share: they have the same sequences and heads. Windows may differ; the plan's own only weighs the tasks.
class AttentionPlan {
public:
    // Lists a step's tasks in place of those before, the heaviest first, so that what runs last is short. `threads`
    // decides how decodes are cut, which changes no bit.
    void list(const Sequences& sequences, const AttentionShape& shape, int threads) {
        tasks_.clear();
        shares_.clear();
        const int64_t most_whole = longest_whole_decode(sequences, shape, threads);
        for (int64_t sequence = 0; sequence < sequences.count; ++sequence) {
            const int64_t rows = sequences.new_rows(sequence), context = sequences.context_lens[sequence];
            if (rows == 1) {
                add_decode(sequence, context, most_whole, threads, shape);
            } else {
                add_prefill(sequence, context, rows, shape);
            }
        }
        std::sort(tasks_.begin(), tasks_.end(), [](const AttentionTask& a, const AttentionTask& b) {
            return std::tie(b.cost, a.sequence, a.share, a.first_row, a.kv_head) <
                   std::tie(a.cost, b.sequence, b.share, b.first_row, b.kv_head);
        });
        make_room(shape);
    }

    int64_t tasks() const { return static_cast<int64_t>(tasks_.size()); }
    const AttentionTask& operator[](int64_t task) const { return tasks_[task]; }

    bool shares_decodes() const { return !shares_.empty(); }

    SharedDecode shared(int32_t index) const {
        return {sums_.data() + index * ContextParts::MOST * sums_size_, &finished_[index], shares_[index]};
    }

private:
    // A key costs a decode about so many times what it costs a row of a prefill, which finds it in a near cache.
    static constexpr int64_t DECODE_COST = 3;
    // A decode is shared where it is longer than a thread's part of all decodes, divided by this, and by no more tasks
    // than there are threads: each task waits for the memory that it reads first.
    static constexpr int64_t DECODES_PER_THREAD = 4;

    std::vector<AttentionTask> tasks_;
    std::vector<int32_t> shares_;
    AlignedArray<float> sums_{0};
    // Zero between two layers.
    std::unique_ptr<std::atomic<int32_t>[]> finished_;
    int64_t sums_size_ = 0, room_for_sums_ = 0, room_for_counts_ = 0;

    static int64_t seen(int64_t context, const AttentionShape& shape) { return context - shape.first_seen(context); }

    static int64_t longest_whole_decode(const Sequences& sequences, const AttentionShape& shape, int threads) {
        int64_t all = 0;
        for (int64_t sequence = 0; sequence < sequences.count; ++sequence) {
            if (sequences.new_rows(sequence) == 1) all += seen(sequences.context_lens[sequence], shape);
        }
        return std::max<int64_t>(1, all / (threads * DECODES_PER_THREAD));
    }

    void add_decode(int64_t sequence, int64_t context, int64_t most_whole, int threads,
                    const AttentionShape& shape) {
        const int64_t keys = seen(context, shape);
        const int64_t parts = ContextParts(context, shape).count();
        const int64_t shares = std::min<int64_t>({parts, threads, keys / most_whole + 1});
        const int64_t cost = keys * shape.heads * DECODE_COST / shares;
        const auto shared = static_cast<int32_t>(shares == 1 ? AttentionTask::WHOLE : shares_.size());
        for (int64_t share = 0; share < shares; ++share) {
            tasks_.push_back(
                {cost, static_cast<int32_t>(sequence), 0, 1, 0, true, shared, static_cast<int32_t>(share)});
        }
        if (shares > 1) shares_.push_back(static_cast<int32_t>(shares));
    }

    void add_prefill(int64_t sequence, int64_t context, int64_t new_rows, const AttentionShape& shape) {
        const int64_t most = rows_per_block(shape);
        for (int64_t first = 0; first < new_rows; first += most) {
            const int64_t rows = std::min(most, new_rows - first), end = context - new_rows + first + rows;
            const int64_t keys = end - shape.first_seen(end - rows + 1);
            for (int64_t head = 0; head < shape.kv_heads; ++head) {
                tasks_.push_back({keys * rows * shape.group(), static_cast<int32_t>(sequence),
                                  static_cast<int32_t>(first), static_cast<int32_t>(rows), static_cast<int32_t>(head),
                                  false, AttentionTask::WHOLE, 0});
            }
        }
    }

    // It only grows, so that steps seldom allocate.
    void make_room(const AttentionShape& shape) {
        const auto decodes = static_cast<int64_t>(shares_.size());
        sums_size_ = DecodeSums::size(shape);
        if (decodes > room_for_counts_) {
            room_for_counts_ = decodes;
            finished_ = std::make_unique<std::atomic<int32_t>[]>(decodes);
            for (int64_t i = 0; i < decodes; ++i) finished_[i].store(0, std::memory_order_relaxed);
        }
        if (decodes * ContextParts::MOST * sums_size_ > room_for_sums_) {
            room_for_sums_ = decodes * ContextParts::MOST * sums_size_;
            sums_ = AlignedArray<float>(room_for_sums_);
        }
    }
};

}  // namespace quantgate
