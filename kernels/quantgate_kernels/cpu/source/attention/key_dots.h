// How the keys of a cache are multiplied with bfloat16 queries by the dot products of AVX-512, sixteen keys at a time.
//
// bfloat16 keys are multiplied as they are. int8 keys are multiplied by whole numbers, so that nothing but exact sums
// is added: a query is 16-bit whole numbers times a power of two. Its numbers down to a 127th of its largest are what
// they were, and those below are off by 2^-15 of the largest at most.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "attention/sixteen_sums.h"
#include "common/intrinsics.h"
#include "common/lanes.h"
#include "common/number.h"

#if QUANTGATE_AVX512_BF16 && QUANTGATE_AVX512_VNNI
#define QUANTGATE_DOT_TILES 1
#else
#define QUANTGATE_DOT_TILES 0
#endif

namespace quantgate {

#if QUANTGATE_DOT_TILES

// The `bytes` that are there of a vector, and zeros.
template <int64_t BYTES>
QUANTGATE_INLINED __m512i load_bytes(const void* from) {
    static_assert(BYTES >= 16 && BYTES % 16 == 0, "rows are whole lanes");
    if constexpr (BYTES >= 64) return _mm512_loadu_si512(from);
    if constexpr (BYTES == 16) return _mm512_zextsi128_si512(_mm_loadu_si128(static_cast<const __m128i*>(from)));
    if constexpr (BYTES == 32) return _mm512_zextsi256_si512(_mm256_loadu_si256(static_cast<const __m256i*>(from)));
    return _mm512_maskz_loadu_epi32(0x0fff, from);
}

// Sixteen numbers of a row in float32.
QUANTGATE_INLINED __m512 widened(const BFloat16* from) {
    const __m256i numbers = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(numbers), 16));
}
QUANTGATE_INLINED __m512 widened(const int8_t* from) {
    const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes));
}

// A row of WIDTH lanes as vectors; codes as code + 128.
template <class Stored, int64_t WIDTH>
struct KeyVectors {
    static constexpr int64_t BYTES = WIDTH * LANES * sizeof(Stored), COUNT = (BYTES + 63) / 64;

    __m512i vectors[COUNT];

    QUANTGATE_INLINED explicit KeyVectors(const Stored* row) {
        const auto* bytes = reinterpret_cast<const uint8_t*>(row);
#pragma GCC unroll 4
        for (int64_t v = 0; v < COUNT - 1; ++v) vectors[v] = load_bytes<64>(bytes + v * 64);
        vectors[COUNT - 1] = load_bytes<BYTES - (COUNT - 1) * 64>(bytes + (COUNT - 1) * 64);
        if constexpr (std::is_same_v<Stored, int8_t>) {
#pragma GCC unroll 4
            for (int64_t v = 0; v < COUNT; ++v) {
                vectors[v] = _mm512_xor_si512(vectors[v], _mm512_set1_epi8(static_cast<char>(0x80)));
            }
        }
    }
};

// Queries as keys of this type are multiplied with them, one after another.
template <class Stored, int64_t WIDTH>
struct DotQuery;

template <int64_t WIDTH>
struct DotQuery<BFloat16, WIDTH> {
    using Key = KeyVectors<BFloat16, WIDTH>;

    __m512i numbers[Key::COUNT];

    static DotQuery of(const BFloat16* query) {
        const Key whole(query);
        DotQuery result;
        std::copy_n(whole.vectors, Key::COUNT, result.numbers);
        return result;
    }

    QUANTGATE_INLINED __m512i multiply(const Key& key) const {
        __m512 sums = _mm512_setzero_ps();
#pragma GCC unroll 4
        for (int64_t v = 0; v < Key::COUNT; ++v) {
            sums = _mm512_dpbf16_ps(sums, (__m512bh)key.vectors[v], (__m512bh)numbers[v]);
        }
        return _mm512_castps_si512(sums);
    }

    static __m512i add(__m512i a, __m512i b) {
        return _mm512_castps_si512(_mm512_add_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b)));
    }

    __m512 products(__m512i sums) const { return _mm512_castsi512_ps(sums); }
};

// upper * 256 + lower is the query divided by `unit`. Keys come as code + 128, as the instruction wants them; `excess`
// is what that adds to a sum. A lane's sum, and the sum of all lanes, stay below 2^31 up to 128 numbers.
template <int64_t WIDTH>
struct DotQuery<int8_t, WIDTH> {
    static_assert(WIDTH * LANES <= 128, "sums have 32 bits");
    using Key = KeyVectors<int8_t, WIDTH>;

    __m512i upper[Key::COUNT], lower[Key::COUNT];
    int32_t excess;
    float unit;

    // A query with a NaN or an infinity has a NaN for its unit, and so all its scores are.
    static DotQuery of(const BFloat16* query) {
        __m512i largest = _mm512_setzero_si512();
        for (int64_t d = 0; d < WIDTH * LANES; d += LANES) largest = _mm512_max_epu32(largest, magnitudes(query + d));
        const uint32_t most = _mm512_reduce_max_epu32(largest);
        // The largest becomes 2^14 or more, and so little below 2^15 at most that `upper` holds it. Tiny queries, whose
        // unit would be no normal number, lose bits.
        const uint32_t exponent = std::max<uint32_t>((most + 0x10000u) >> 23, 20);
        DotQuery result;
        alignas(64) uint8_t upper_bytes[Key::COUNT * 64] = {}, lower_bytes[Key::COUNT * 64] = {};
        __m512i sum = _mm512_setzero_si512();
        for (int64_t d = 0; d < WIDTH * LANES; d += LANES) {
            const __m512 scaled = _mm512_mul_ps(widened(query + d), _mm512_set1_ps(power_of_two(268 - exponent)));
            const __m512i number = _mm512_cvtps_epi32(scaled);
            const __m512i low = _mm512_srai_epi32(_mm512_slli_epi32(number, 24), 24);
            const __m512i up = _mm512_srai_epi32(_mm512_sub_epi32(number, low), 8);
            _mm_store_si128(reinterpret_cast<__m128i*>(upper_bytes + d), _mm512_cvtepi32_epi8(up));
            _mm_store_si128(reinterpret_cast<__m128i*>(lower_bytes + d), _mm512_cvtepi32_epi8(low));
            sum = _mm512_add_epi32(sum, number);
        }
        for (int64_t v = 0; v < Key::COUNT; ++v) {
            result.upper[v] = _mm512_load_si512(upper_bytes + v * 64);
            result.lower[v] = _mm512_load_si512(lower_bytes + v * 64);
        }
        const bool finite = most < 0x7f800000u;
        result.excess = finite ? 128 * _mm512_reduce_add_epi32(sum) : 0;
        result.unit = finite ? power_of_two(exponent - 14) : std::numeric_limits<float>::quiet_NaN();
        return result;
    }

    QUANTGATE_INLINED __m512i multiply(const Key& key) const {
        __m512i sums = _mm512_setzero_si512();
#pragma GCC unroll 4
        for (int64_t v = 0; v < Key::COUNT; ++v) sums = _mm512_dpbusd_epi32(sums, key.vectors[v], upper[v]);
        sums = _mm512_slli_epi32(sums, 8);
#pragma GCC unroll 4
        for (int64_t v = 0; v < Key::COUNT; ++v) sums = _mm512_dpbusd_epi32(sums, key.vectors[v], lower[v]);
        return sums;
    }

    static __m512i add(__m512i a, __m512i b) { return _mm512_add_epi32(a, b); }

    __m512 products(__m512i sums) const {
        const __m512 exact = _mm512_cvtepi32_ps(_mm512_sub_epi32(sums, _mm512_set1_epi32(excess)));
        return _mm512_mul_ps(exact, _mm512_set1_ps(unit));
    }

private:
    static __m512i magnitudes(const BFloat16* from) {
        return _mm512_and_si512(_mm512_castps_si512(widened(from)), _mm512_set1_epi32(0x7fffffff));
    }

    // By its exponent as float32 stores it.
    static float power_of_two(uint32_t exponent) {
        const uint32_t bits = exponent << 23;
        float power;
        std::memcpy(&power, &bits, sizeof power);
        return power;
    }
};

#endif

}  // namespace quantgate
