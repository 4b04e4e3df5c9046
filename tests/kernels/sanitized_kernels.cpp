// Calls every kernel on buffers that end exactly where their data ends, on sizes that fill no vector register.
#include <cstdint>
#include <cstdio>
#include <limits>
#include <vector>

extern "C" {
void quantgate_rms_norm_bfloat16(const void*, const void*, const void*, float, void*, void*, int64_t, int64_t, int);
void quantgate_rms_norm_float32(const void*, const void*, const void*, float, void*, void*, int64_t, int64_t, int);
void quantgate_silu_and_mul_bfloat16(const void*, void*, int64_t, int64_t, int);
void quantgate_silu_and_mul_float32(const void*, void*, int64_t, int64_t, int);
void quantgate_rope_and_write_kv_bfloat16(const void*, const float*, const float*, const int64_t*, void*, void*, void*,
                                          float*, float*, int64_t, int64_t, int64_t, int64_t, int);
void quantgate_rope_and_write_kv_float32(const void*, const float*, const float*, const int64_t*, void*, void*, void*,
                                         float*, float*, int64_t, int64_t, int64_t, int64_t, int);
void quantgate_attention_bfloat16(const void*, const void*, const void*, const float*, const float*, const int32_t*,
                                  const int32_t*, const int32_t*, void*, int64_t, int64_t, int64_t, int64_t, int64_t,
                                  int64_t, int64_t, float, int);
void quantgate_attention_float32(const void*, const void*, const void*, const float*, const float*, const int32_t*,
                                 const int32_t*, const int32_t*, void*, int64_t, int64_t, int64_t, int64_t, int64_t,
                                 int64_t, int64_t, float, int);
}

template <class Number, class Norm, class Silu, class Rope, class Attention>
void run(Number one, Norm norm, Silu silu, Rope rope, Attention attention) {
    for (int64_t rows : {1, 3}) {
        for (int64_t width : {1, 5, 33, 64}) {
            std::vector<Number> x(rows * width, one), weight(width, one), y(x), total(x);
            norm(x.data(), x.data(), weight.data(), 1e-5f, y.data(), total.data(), rows, width, 1);
            norm(x.data(), nullptr, weight.data(), 1e-5f, y.data(), nullptr, rows, width, 1);
            std::vector<Number> gate_up(rows * 2 * width, one);
            silu(gate_up.data(), y.data(), rows, width, 1);
        }
        for (int64_t head_dim : {2, 6, 64, 80, 128, 130}) {
            const int64_t heads = 6, kv_heads = 2, blocks = 7, block_size = 5;
            std::vector<Number> qkv(rows * (heads + 2 * kv_heads) * head_dim, one), q(rows * heads * head_dim, one);
            std::vector<Number> keys(blocks * block_size * kv_heads * head_dim, one), values(keys), out(q);
            std::vector<int8_t> key_codes(keys.size()), value_codes(keys.size());
            std::vector<float> key_scales(blocks * block_size * kv_heads), value_scales(key_scales);
            std::vector<float> table(rows * head_dim, 0.5f);
            std::vector<int64_t> slots;
            for (int64_t row = 0; row < rows; ++row) slots.push_back(blocks * block_size - 1 - row);
            rope(qkv.data(), table.data(), table.data(), slots.data(), q.data(), keys.data(), values.data(), nullptr,
                 nullptr, rows, heads, kv_heads, head_dim, 1);
            rope(qkv.data(), table.data(), table.data(), slots.data(), q.data(), key_codes.data(), value_codes.data(),
                 key_scales.data(), value_scales.data(), rows, heads, kv_heads, head_dim, 1);
            std::vector<int32_t> starts, contexts, tables;
            for (int64_t row = 0; row < rows; ++row) {
                starts.push_back(static_cast<int32_t>(row));
                contexts.push_back(static_cast<int32_t>(row == 0 ? blocks * block_size : row));
                for (int32_t block = blocks - 1; block >= 0; --block) tables.push_back(block);
            }
            starts.push_back(static_cast<int32_t>(rows));
            for (int64_t window : {0, 7}) {
                attention(q.data(), keys.data(), values.data(), nullptr, nullptr, starts.data(), contexts.data(),
                          tables.data(), out.data(), rows, heads, kv_heads, head_dim, block_size, blocks, window, 0.1f,
                          1);
                attention(q.data(), key_codes.data(), value_codes.data(), key_scales.data(), value_scales.data(),
                          starts.data(), contexts.data(), tables.data(), out.data(), rows, heads, kv_heads, head_dim,
                          block_size, blocks, window, 0.1f, 1);
            }
        }
    }
}

// Rows that have no scale, or one that has lost its digits.
void quantize_extremes() {
    const float infinity = std::numeric_limits<float>::infinity(), tiny = std::numeric_limits<float>::denorm_min();
    for (float extreme : {infinity, -infinity, infinity - infinity, tiny, 180 * tiny, 3e38f, 0.0f}) {
        const int64_t head_dim = 6, slot = 0;
        std::vector<float> qkv(3 * head_dim, extreme), query(head_dim), cosines(head_dim, 1.0f), sines(head_dim, 0.0f);
        std::vector<int8_t> key(head_dim), value(head_dim);
        float key_scale, value_scale;
        quantgate_rope_and_write_kv_float32(qkv.data(), cosines.data(), sines.data(), &slot, query.data(), key.data(),
                                            value.data(), &key_scale, &value_scale, 1, 1, 1, head_dim, 1);
    }
}

int main() {
    quantize_extremes();
    run<uint16_t>(0x3f80, quantgate_rms_norm_bfloat16, quantgate_silu_and_mul_bfloat16,
                  quantgate_rope_and_write_kv_bfloat16, quantgate_attention_bfloat16);
    run<float>(1.0f, quantgate_rms_norm_float32, quantgate_silu_and_mul_float32, quantgate_rope_and_write_kv_float32,
               quantgate_attention_float32);
    std::puts("finished");
}
