// Attention of mixed steps on buffers that end exactly where their data ends: on the heap, where the address sanitizer
// looks at plain reads, and before a page that cannot be read, which stops vector instructions too.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "attention/dot_arithmetic.h"

extern "C" {
void quantgate_attention_bfloat16(const void*, const void*, const void*, const float*, const float*, const int32_t*,
                                  const int32_t*, const int32_t*, void*, int64_t, int64_t, int64_t, int64_t, int64_t,
                                  int64_t, int64_t, float, int);
void quantgate_attention_float32(const void*, const void*, const void*, const float*, const float*, const int32_t*,
                                 const int32_t*, const int32_t*, void*, int64_t, int64_t, int64_t, int64_t, int64_t,
                                 int64_t, int64_t, float, int);
}

using Attention = decltype(quantgate_attention_float32);

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "%s\n", what);
    std::abort();
}

template <class T>
struct GuardedAllocator {
    using value_type = T;

    GuardedAllocator() = default;
    template <class U>
    GuardedAllocator(const GuardedAllocator<U>&) {}

    static size_t page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
    static size_t readable(size_t count) { return (count * sizeof(T) + page() - 1) / page() * page(); }

    T* allocate(size_t count) {
        const size_t size = readable(count);
        void* pages = mmap(nullptr, size + page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        require(pages != MAP_FAILED, "no memory for a guarded buffer");
        char* guard = static_cast<char*>(pages) + size;
        require(mprotect(guard, page(), PROT_NONE) == 0, "no guard behind a buffer");
        return reinterpret_cast<T*>(guard - count * sizeof(T));
    }
    void deallocate(T* numbers, size_t count) {
        const size_t size = readable(count);
        munmap(reinterpret_cast<char*>(numbers) + count * sizeof(T) - size, size + page());
    }
    bool operator==(const GuardedAllocator&) const { return true; }
    bool operator!=(const GuardedAllocator&) const { return false; }
};

float wide(float number) { return number; }
float wide(uint16_t number) { return quantgate::to_float(static_cast<quantgate::BFloat16>(number)); }

struct Heads {
    int64_t heads, kv_heads, head_dim, block_size;
};

template <template <class> class Allocator, class Number>
void run(Number one, Attention attention, const Heads& shape) {
    // Decodes, chunks and whole prompts: tokens before the step and new ones.
    const int32_t past[] = {5, 0, 66, 0, 31}, fresh[] = {1, 35, 3, 2, 1};
    const int64_t sequences = 5;
    std::vector<int32_t, Allocator<int32_t>> starts{0}, contexts, tables;
    int64_t max_blocks = 0, blocks = 0;
    for (int64_t s = 0; s < sequences; ++s) {
        starts.push_back(starts.back() + fresh[s]);
        contexts.push_back(past[s] + fresh[s]);
        max_blocks = std::max(max_blocks, (contexts.back() + shape.block_size - 1) / shape.block_size);
    }
    starts.shrink_to_fit();
    contexts.shrink_to_fit();
    for (int64_t s = 0; s < sequences; ++s) {
        const int64_t used = (contexts[s] + shape.block_size - 1) / shape.block_size;
        for (int64_t b = 0; b < max_blocks; ++b) tables.push_back(b < used ? static_cast<int32_t>(blocks++) : -1);
    }
    tables.shrink_to_fit();
    // The last token of the last sequence stands in the cache's last slot.
    const int64_t last = (contexts.back() - 1) % shape.block_size + 1;
    const int64_t slots = (blocks - 1) * shape.block_size + last;
    std::vector<Number, Allocator<Number>> q(starts.back() * shape.heads * shape.head_dim, one), out(q.size());
    std::vector<Number, Allocator<Number>> keys(slots * shape.kv_heads * shape.head_dim, one), values(keys);
    std::vector<int8_t, Allocator<int8_t>> key_codes(keys.size(), 3), value_codes(keys.size(), 100);
    std::vector<float, Allocator<float>> key_scales(slots * shape.kv_heads, 0.5f);
    std::vector<float, Allocator<float>> value_scales(key_scales.size(), 0.01f);
    for (int64_t window : {0, 7}) {
        for (bool coded : {false, true}) {
            const void* all_keys = coded ? static_cast<const void*>(key_codes.data()) : keys.data();
            const void* all_values = coded ? static_cast<const void*>(value_codes.data()) : values.data();
            attention(q.data(), all_keys, all_values, coded ? key_scales.data() : nullptr,
                      coded ? value_scales.data() : nullptr, starts.data(), contexts.data(), tables.data(), out.data(),
                      sequences, shape.heads, shape.kv_heads, shape.head_dim, shape.block_size, max_blocks, window,
                      0.1f, 1);
            for (Number number : out) require(std::fabs(wide(number) - 1.0f) < 0.01f, "a mean of ones is not one");
        }
    }
}

template <template <class> class Allocator>
void run_all(const Heads& shape) {
    run<Allocator, uint16_t>(0x3f80, quantgate_attention_bfloat16, shape);
    run<Allocator, float>(1.0f, quantgate_attention_float32, shape);
}

#if QUANTGATE_AVX512_BF16
void check_powers() {
    for (float x = 0.0f; x > -126.0f; x -= 1.0f / 1024) {
        const double exact = std::exp2(static_cast<double>(x));
        const float weight = _mm512_cvtss_f32(quantgate::DotArithmetic::weight_of(_mm512_set1_ps(x)));
        const float factor = _mm512_cvtss_f32(quantgate::DotArithmetic::factor_of(_mm512_set1_ps(x)));
        require(std::fabs(weight - exact) <= 1.1e-4 * exact, "a weight is further from 2^x than documented");
        require(std::fabs(factor - exact) <= 0x1p-22 * exact, "a factor is further from 2^x than documented");
        require(x != 0.0f || factor == 1.0f, "2^0 is not 1");
    }
    for (float x : {-151.0f, -1e30f, -INFINITY}) {
        require(_mm512_cvtss_f32(quantgate::DotArithmetic::weight_of(_mm512_set1_ps(x))) == 0.0f, "no zero far below");
        require(_mm512_cvtss_f32(quantgate::DotArithmetic::factor_of(_mm512_set1_ps(x))) == 0.0f, "no zero far below");
    }
    require(std::isnan(_mm512_cvtss_f32(quantgate::DotArithmetic::weight_of(_mm512_set1_ps(NAN)))), "a NaN is lost");
}
#else
void check_powers() {}
#endif

int main() {
    check_powers();
    int64_t block_size = 1;
    for (int64_t head_dim : {1, 2, 6, 16, 31, 40, 64, 80, 128, 130}) {
        for (int64_t heads : {1, 9, 8}) {
            const Heads shape{heads, heads == 9 ? 3 : 1, head_dim, block_size};
            run_all<std::allocator>(shape);
            run_all<GuardedAllocator>(shape);
            block_size = block_size % 17 + 5;
        }
    }
    run_all<GuardedAllocator>({100, 1, 3, 16});
    std::puts("finished");
}
