// INT4 tiles to bfloat16 for products with many rows: out[in][out] = (code - 8) * scale, rounded once.
// tiles [out / 64][in][32]: byte j holds the code of output j in its low half, of output j + 32 in its high half;
// scales_and_zeros [in / group][out][2]. Written as [in][out], each tile row is 64 neighbours: nothing is transposed.
// Bound: reads half a byte and writes two per weight; the matrix product that follows finds them in the cache.
#include "common/number.h"
#include "common/parallel.h"

namespace quantgate {
namespace {

constexpr int64_t kOutputs = 64;
constexpr int64_t kHalf = kOutputs / 2;

void expand_int4(const uint8_t* tiles, const BFloat16* scales_and_zeros, BFloat16* out, int64_t outputs,
                 int64_t inputs, int64_t group_size, int threads) {
    parallel_for(outputs / kOutputs, 1, threads, [=](int64_t begin, int64_t end) {
        for (int64_t tile = begin; tile < end; ++tile) {
            for (int64_t first = 0; first < inputs; first += group_size) {
                float scales[kOutputs];
                const BFloat16* pairs = scales_and_zeros + (first / group_size * outputs + tile * kOutputs) * 2;
                for (int64_t i = 0; i < kOutputs; ++i) scales[i] = to_float(pairs[2 * i]);
                for (int64_t input = first; input < first + group_size; ++input) {
                    const uint8_t* codes = tiles + (tile * inputs + input) * kHalf;
                    BFloat16* into = out + input * outputs + tile * kOutputs;
#pragma omp simd simdlen(16)
                    for (int64_t i = 0; i < kHalf; ++i) {
                        into[i] = rounded<BFloat16>(static_cast<float>((codes[i] & 15) - 8) * scales[i]);
                    }
#pragma omp simd simdlen(16)
                    for (int64_t i = 0; i < kHalf; ++i) {
                        into[kHalf + i] = rounded<BFloat16>(static_cast<float>((codes[i] >> 4) - 8) * scales[kHalf + i]);
                    }
                }
            }
        }
    });
}

}  // namespace
}  // namespace quantgate

extern "C" void quantgate_expand_int4_bfloat16(const uint8_t* tiles, const quantgate::BFloat16* scales_and_zeros,
                                               quantgate::BFloat16* out, int64_t outputs, int64_t inputs,
                                               int64_t group_size, int threads) {
    quantgate::expand_int4(tiles, scales_and_zeros, out, outputs, inputs, group_size, threads);
}
