// Calls every product of fixed order on buffers that end exactly where their data ends, on sizes that fill neither a
// vector register nor a tile nor a strip.
#include <cstdint>
#include <cstdio>
#include <vector>

extern "C" {
void quantgate_fixed_order_dense_bfloat16(const void*, const void*, void*, int64_t, int64_t, int64_t, int);
void quantgate_fixed_order_dense_float32(const void*, const void*, void*, int64_t, int64_t, int64_t, int);
void quantgate_fixed_order_logits_bfloat16(const void*, const void*, float*, int64_t, int64_t, int64_t, int);
void quantgate_fixed_order_logits_float32(const void*, const void*, float*, int64_t, int64_t, int64_t, int);
void quantgate_fixed_order_int8_bfloat16(const void*, const int8_t*, const void*, void*, int64_t, int64_t, int64_t, int);
void quantgate_fixed_order_int8_float32(const void*, const int8_t*, const void*, void*, int64_t, int64_t, int64_t, int);
void quantgate_fixed_order_int4_bfloat16(const void*, const uint8_t*, const void*, const uint8_t*, void*, int, int64_t,
                                         int64_t, int64_t, int64_t, int);
void quantgate_fixed_order_int4_float32(const void*, const uint8_t*, const void*, const uint8_t*, void*, int, int64_t,
                                        int64_t, int64_t, int64_t, int);
void quantgate_fixed_order_int8_groups_bfloat16(const void*, const int8_t*, const void*, const int8_t*, void*, int,
                                                int64_t, int64_t, int64_t, int64_t, int);
void quantgate_fixed_order_int8_groups_float32(const void*, const int8_t*, const void*, const int8_t*, void*, int,
                                               int64_t, int64_t, int64_t, int64_t, int);
}

// With scales of x's own type and of float16, with zeros and without.
template <class Number, class Code, class Product>
void run_groups(Number one, Code code, Product product, const std::vector<Code>& codes, int64_t rows, int64_t inputs,
                int64_t outputs, int64_t group_size) {
    const int64_t groups = outputs * (inputs / group_size);
    const std::vector<Number> x(rows * inputs, one), scales(groups, one);
    const std::vector<uint16_t> half_scales(groups, 0x3c00);
    const std::vector<Code> zeros(groups, code);
    std::vector<Number> out(rows * outputs);
    for (const Code* some : {static_cast<const Code*>(nullptr), zeros.data()}) {
        product(x.data(), codes.data(), scales.data(), some, out.data(), 0, rows, inputs, outputs, group_size, 1);
        product(x.data(), codes.data(), half_scales.data(), some, out.data(), 1, rows, inputs, outputs, group_size, 1);
    }
}

template <class Number, class Dense, class Logits, class Int8, class Int8Groups, class Int4>
void run(Number one, Dense dense, Logits logits, Int8 int8, Int8Groups int8_groups, Int4 int4) {
    for (int64_t rows : {1, 2, 3, 5, 9}) {
        for (int64_t outputs : {1, 3, 16, 21, 70}) {
            for (int64_t inputs : {1, 31, 32, 33, 64, 96}) {
                std::vector<Number> x(rows * inputs, one), weight(outputs * inputs, one), out(rows * outputs);
                std::vector<float> wide(rows * outputs);
                dense(x.data(), weight.data(), out.data(), rows, inputs, outputs, 1);
                logits(x.data(), weight.data(), wide.data(), rows, inputs, outputs, 1);
                std::vector<int8_t> codes(outputs * inputs, -127);
                std::vector<Number> scales(outputs, one);
                int8(x.data(), codes.data(), scales.data(), out.data(), rows, inputs, outputs, 1);
            }
            for (int64_t group_size : {2, 32, 64}) {
                const int64_t inputs = 3 * group_size;
                const std::vector<uint8_t> packed(outputs * inputs / 2, 0xf0);
                run_groups<Number, uint8_t>(one, 15, int4, packed, rows, inputs, outputs, group_size);
                const std::vector<int8_t> codes(outputs * inputs, -128);
                run_groups<Number, int8_t>(one, 127, int8_groups, codes, rows, inputs, outputs, group_size);
            }
        }
    }
}

int main() {
    run<uint16_t>(0x3f80, quantgate_fixed_order_dense_bfloat16, quantgate_fixed_order_logits_bfloat16,
                  quantgate_fixed_order_int8_bfloat16, quantgate_fixed_order_int8_groups_bfloat16,
                  quantgate_fixed_order_int4_bfloat16);
    run<float>(1.0f, quantgate_fixed_order_dense_float32, quantgate_fixed_order_logits_float32,
               quantgate_fixed_order_int8_float32, quantgate_fixed_order_int8_groups_float32,
               quantgate_fixed_order_int4_float32);
    std::puts("finished");
}
