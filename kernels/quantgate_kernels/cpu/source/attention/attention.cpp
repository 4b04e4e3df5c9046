// Attention of all sequences of a step, decodes and prefills alike, over the paged cache (attention_step.h).
#include "attention/attention_step.h"
#include "common/parallel.h"

namespace quantgate {
namespace {

template <class Number>
void attention(const AttentionStep<Number>& step, int threads) {
    parallel_for(step.tasks(), 1, threads, [&](int64_t begin, int64_t end) {
        // A thread keeps its own from call to call.
        thread_local AttentionStepScratch<Number> scratch;
        for (int64_t task = begin; task < end; ++task) step.run(task, task + threads, scratch);
    });
}

}  // namespace
}  // namespace quantgate

// out: [rows, heads, head_dim].
#define QUANTGATE_ATTENTION(NAME, NUMBER)                                                                              \
    extern "C" void NAME(const NUMBER* q, const void* keys, const void* values, const float* key_scales,               \
                         const float* value_scales, const int32_t* query_starts, const int32_t* context_lens,          \
                         const int32_t* block_tables, NUMBER* out, int64_t sequences, int64_t heads, int64_t kv_heads, \
                         int64_t head_dim, int64_t block_size, int64_t max_blocks, int64_t window, float scale,        \
                         int threads) {                                                                                \
        const quantgate::Sequences all{query_starts, context_lens, block_tables, sequences};                           \
        const quantgate::AttentionShape shape{heads, kv_heads, head_dim, block_size, max_blocks, window, scale};       \
        quantgate::AttentionPlan plan;                                                                                 \
        plan.list(all, shape, threads);                                                                                \
        quantgate::attention<NUMBER>(                                                                                  \
            {plan, all, shape, q, keys, values, key_scales, value_scales, out, heads * head_dim}, threads);            \
    }

QUANTGATE_ATTENTION(quantgate_attention_bfloat16, quantgate::BFloat16)
QUANTGATE_ATTENTION(quantgate_attention_float32, float)
