// Logits in float32 from a head product that was rounded to 16 bits: all are widened, and each row's best candidates
// are multiplied again in float32, so that rounding makes no tie among them and decides no token.
// Bound: reads the rounded logits twice and writes the wide ones once; reads `candidates` rows of the head per row.
#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "common/number.h"
#include "common/parallel.h"

namespace quantgate {
namespace {

constexpr int64_t CHUNK = 256;

// Widens one row; returns each chunk's largest logit.
std::vector<float> widen(const BFloat16* rounded_logits, float* logits, int64_t vocabulary) {
    std::vector<float> largest;
    largest.reserve(vocabulary / CHUNK + 1);
    for (int64_t begin = 0; begin < vocabulary; begin += CHUNK) {
        const int64_t end = std::min(begin + CHUNK, vocabulary);
        float most = -std::numeric_limits<float>::infinity();
#pragma omp simd simdlen(16) reduction(max : most)
        for (int64_t word = begin; word < end; ++word) {
            const float logit = to_float(rounded_logits[word]);
            logits[word] = logit;
            most = logit > most ? logit : most;
        }
        largest.push_back(most);
    }
    return largest;
}

// The `count` words of the largest logits; the lower word first among equals.
std::vector<int64_t> best_words(const float* logits, int64_t vocabulary, const std::vector<float>& largest,
                                int64_t count) {
    // `count` chunks reach this limit, and so do at least as many words: nothing below it can be among the best.
    float limit = -std::numeric_limits<float>::infinity();
    if (count <= static_cast<int64_t>(largest.size())) {
        std::vector<float> sorted = largest;
        std::nth_element(sorted.begin(), sorted.begin() + (count - 1), sorted.end(), std::greater<float>());
        limit = sorted[count - 1];
    }
    std::vector<int64_t> words;
    for (int64_t chunk = 0; chunk < static_cast<int64_t>(largest.size()); ++chunk) {
        if (largest[chunk] < limit) continue;
        const int64_t end = std::min((chunk + 1) * CHUNK, vocabulary);
        for (int64_t word = chunk * CHUNK; word < end; ++word) {
            if (logits[word] >= limit) words.push_back(word);
        }
    }
    const auto better = [&](int64_t left, int64_t right) {
        return logits[left] > logits[right] || (logits[left] == logits[right] && left < right);
    };
    if (count < static_cast<int64_t>(words.size())) {
        std::nth_element(words.begin(), words.begin() + count, words.end(), better);
        words.resize(count);
    }
    return words;
}

float product(const BFloat16* left, const BFloat16* right, int64_t size) {
    float sum = 0.0f;
#pragma omp simd simdlen(16) reduction(+ : sum)
    for (int64_t i = 0; i < size; ++i) sum += to_float(left[i]) * to_float(right[i]);
    return sum;
}

}  // namespace
}  // namespace quantgate

extern "C" void quantgate_head_rescore_bfloat16(const quantgate::BFloat16* x, const quantgate::BFloat16* weight,
                                                const quantgate::BFloat16* rounded_logits, float* logits, int64_t rows,
                                                int64_t hidden, int64_t vocabulary, int64_t candidates, int threads) {
    using namespace quantgate;
    parallel_for(rows, 1, threads, [=](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
            float* out = logits + row * vocabulary;
            const std::vector<float> largest = widen(rounded_logits + row * vocabulary, out, vocabulary);
            for (const int64_t word : best_words(out, vocabulary, largest, candidates)) {
                out[word] = product(x + row * hidden, weight + word * hidden, hidden);
            }
        }
    });
}
