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
        return {workspace.query_key_values, decoder.cosines, decoder.sines,   workspace.positions, workspace.slots,
                step.rows,                  decoder.heads,   decoder.kv_heads, decoder.head_dim};
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

    template <class Rows, class Stored>
    void run(const Member& member, const Rows& rows, const CachedRows<Stored>& keys,
             const CachedRows<Stored>& values) const {
        const Sequences sequences{step.query_starts, step.context_lens, step.block_tables, step.sequences};
        const AttentionStep<BFloat16> attention{plan,           sequences,     shape(),
                                                workspace.queries, keys.numbers,  values.numbers,
                                                keys.scales,    values.scales, workspace.attended.numbers,
                                                workspace.attended.size};
        if (step.rows == step.sequences && !plan.shares_decodes()) {
            // What a task attends to is what it has written itself, or what earlier steps have: no meeting is needed.
            return member.share(attention.tasks(), [&](int64_t task) {
                rope(rows, plan[task].sequence, 0, decoder.kv_heads);
                attention.run(task, task + member.count, scratch);
            });
        }
        member.split(step.rows * decoder.kv_heads, [&](int64_t first, int64_t last) {
            for (int64_t i = first; i < last; ++i) {
                const int64_t head = i % decoder.kv_heads;
                rope(rows, i / decoder.kv_heads, head, head + 1);
            }
        });
        member.meet();
        member.share(attention.tasks(), [&](int64_t task) { attention.run(task, task + member.count, scratch); });
    }
};

}  // namespace quantgate
