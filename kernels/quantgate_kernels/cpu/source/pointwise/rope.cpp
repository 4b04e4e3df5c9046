// Rope of a step's queries and keys, and the write of its keys and values into the paged cache, in one pass.
// Bound: reads qkv once, writes queries, keys and values once.
#include <vector>

#include "common/parallel.h"
#include "pointwise/rope_rows.h"

namespace quantgate {
namespace {

template <class Number, class Cache>
void rope_and_write_kv(const RopeRows<Number>& rows, Number* queries, const Cache& cache, int threads) {
    const int64_t numbers = (rows.heads + 2 * rows.kv_heads) * rows.head_dim;
    parallel_for(rows.count, rows_worth_a_thread(numbers), threads, [&](int64_t begin, int64_t end) {
        std::vector<float> wide(rows.head_dim);
        for (int64_t row = begin; row < end; ++row) {
            rope_heads(rows, row, {0, rows.heads}, {0, rows.kv_heads}, queries, cache, wide.data());
        }
    });
}

// The cache takes codes where it has scales, and else numbers of the rows' type.
template <class Number>
void rope_and_write_kv(const RopeRows<Number>& rows, Number* queries, void* keys, void* values, float* key_scales,
                       float* value_scales, int threads) {
    if (key_scales != nullptr) {
        const Int8Rows<Number> cache{static_cast<int8_t*>(keys), static_cast<int8_t*>(values), key_scales,
                                     value_scales};
        return rope_and_write_kv(rows, queries, cache, threads);
    }
    const PlainRows<Number> cache{static_cast<Number*>(keys), static_cast<Number*>(values)};
    rope_and_write_kv(rows, queries, cache, threads);
}

}  // namespace
}  // namespace quantgate

#define QUANTGATE_ROPE(NAME, NUMBER)                                                                                 \
    extern "C" void NAME(const NUMBER* qkv, const float* cosines, const float* sines, const int64_t* slots,          \
                         NUMBER* queries, void* keys, void* values, float* key_scales, float* value_scales,          \
                         int64_t rows, int64_t heads, int64_t kv_heads, int64_t head_dim, int threads) {             \
        quantgate::rope_and_write_kv<NUMBER>(                                                                         \
            {qkv, cosines, sines, nullptr, slots, rows, heads, kv_heads, head_dim}, queries, keys, values,           \
            key_scales, value_scales, threads);                                                                      \
    }

QUANTGATE_ROPE(quantgate_rope_and_write_kv_bfloat16, quantgate::BFloat16)
QUANTGATE_ROPE(quantgate_rope_and_write_kv_float32, float)
