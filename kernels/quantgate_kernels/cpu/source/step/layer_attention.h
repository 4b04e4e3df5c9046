// Norm of heads, rope, cache write and attention of one layer, shared out among the members of a team.
#pragma once

#include "attention/attention_step.h"
#include "common/team.h"
#include "pointwise/norm_row.h"
#include "pointwise/rope_rows.h"
#include "step/decoder.h"
#include "step/step_workspace.h"

namespace quantgate {

struct LayerAttention {
    const Decoder& decoder;
    const Step& step;
    const LayerWeights& weights;
    const LayerCache& cache;
    const StepWorkspace& workspace;
    // Of all new rows; without tasks where every sequence has one.
    const AttentionPlan& plan;
    AttentionStepScratch<BFloat16>& scratch;

    void run(const Member& member) const {
        if (cache.key_scales != nullptr) {
            const Int8Rows<BFloat16> rows{static_cast<int8_t*>(cache.keys), static_cast<int8_t*>(cache.values),
                                          cache.key_scales, cache.value_scales};
            const CachedRows<int8_t> keys{rows.keys, cache.key_scales}, values{rows.values, cache.value_scales};
            return run(member, rows, keys, values);
        }
        const PlainRows<BFloat16> rows{static_cast<BFloat16*>(cache.keys), static_cast<BFloat16*>(cache.values)};
        run(member, rows, CachedRows<BFloat16>{rows.keys, nullptr}, CachedRows<BFloat16>{rows.values, nullptr});
    }

private:
    RopeRows<BFloat16> rope_rows() const {
        return {workspace.query_key_values, step.cosines, step.sines, step.slots,
                step.rows, decoder.heads, decoder.kv_heads, decoder.head_dim};
    }

    AttentionShape shape() const {
        return {decoder.heads, decoder.kv_heads, decoder.head_dim, step.block_size, step.max_blocks, weights.window,
                decoder.attention_scale};
    }

    // Key heads first..last of a row, and the query heads that share them (Qwen3 norms each before rope).
    void norm_heads(int64_t row, int64_t first, int64_t last) const {
        const int64_t group = decoder.heads / decoder.kv_heads;
        BFloat16* queries = workspace.query_key_values + row * decoder.query_key_values();
        norm_each(queries, first * group, last * group, weights.query_norm);
        norm_each(queries + decoder.queries(), first, last, weights.key_norm);
    }

    void norm_each(BFloat16* heads, int64_t first, int64_t last, const float* weight) const {
        const int64_t size = decoder.head_dim;
        for (BFloat16* head = heads + first * size; head < heads + last * size; head += size) {
            scale_row(head, norm_factor(sum_of_squares(head, size), size, decoder.norm_eps), weight, size, head);
        }
    }

    template <class Rows>
    void rope(const Rows& rows, int64_t row, int64_t first, int64_t last) const {
        if (weights.query_norm != nullptr) norm_heads(row, first, last);
        const int64_t group = decoder.heads / decoder.kv_heads;
        rope_heads(rope_rows(), row, {first * group, last * group}, {first, last}, workspace.queries, rows,
                   workspace.wide);
    }

    // With one new row a sequence, what a task attends to is what it has written itself, or what earlier steps have: no
    // meeting is needed between the two.
    template <class Rows, class Stored>
    void decode(const Member& member, const Rows& rows, const CachedRows<Stored>& keys,
                const CachedRows<Stored>& values) const {
        const AttentionShape sizes = shape();
        const auto decode_heads = decode_sequence_for<BFloat16, Stored>(decoder.head_dim);
        scratch.fit(sizes);
        const int64_t heads_per_task = key_heads_per_task(step.sequences, decoder.kv_heads, member.count);
        const int64_t parts = decoder.kv_heads / heads_per_task;
        member.share(step.sequences * parts, [&](int64_t task) {
            const int64_t row = task / parts, first = task % parts * heads_per_task;
            const HeadRange heads{first, first + heads_per_task};
            rope(rows, row, heads.begin, heads.end);
            decode_heads(workspace.queries + row * decoder.queries(), keys, values,
                         step.block_tables + row * step.max_blocks, step.context_lens[row], heads, sizes,
                         scratch.decode(), workspace.attended.row(row));
        });
    }

    template <class Rows, class Stored>
    void run(const Member& member, const Rows& rows, const CachedRows<Stored>& keys,
             const CachedRows<Stored>& values) const {
        if (step.rows == step.sequences) return decode(member, rows, keys, values);
        member.split(step.rows, [&](int64_t first, int64_t last) {
            for (int64_t row = first; row < last; ++row) rope(rows, row, 0, decoder.kv_heads);
        });
        member.meet();
        const Sequences sequences{step.query_starts, step.context_lens, step.block_tables, step.sequences};
        const AttentionStep<BFloat16> attention{plan, sequences, shape(), workspace.queries, keys.numbers,
                                                values.numbers, keys.scales, values.scales, workspace.attended.numbers, workspace.attended.size};
        member.share(attention.tasks(), [&](int64_t task) { attention.run(task, scratch); });
    }
};

}  // namespace quantgate
