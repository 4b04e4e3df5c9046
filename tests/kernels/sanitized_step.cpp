// Calls the step program and its head on buffers that end exactly where their data ends, for a tiny decoder: alone, and
// on teams of threads, which must give the same bits. Memory that nothing has been written to yet holds NaNs.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "some_screen.h"
#include "step/head_workspace.h"
#include "thread_team.h"
#include "tiny_decoder.h"

extern "C" {
int64_t quantgate_step_bytes(const quantgate::Decoder* decoder, int64_t rows, int threads);
void quantgate_decoder_step(const quantgate::Decoder* decoder, const quantgate::Step* step, float* residual,
                            uint8_t* workspace, int threads);
int64_t quantgate_step_tokens_bytes(const quantgate::Decoder* decoder, const quantgate::Head* head,
                                    const quantgate::Step* step, int threads);
void quantgate_step_tokens(const quantgate::Decoder* decoder, const quantgate::Head* head, const quantgate::Step* step,
                           int64_t* tokens, uint8_t* workspace, int threads);
int64_t quantgate_head_bytes(const quantgate::Head* head, int64_t rows, int threads);
void quantgate_head(const quantgate::Head* head, const float* residual, int64_t rows, float* logits, int64_t* tokens,
                    uint8_t* workspace, int threads);
}

namespace sanitized {
namespace {

// On a cache line of its own, as the step program asks for it.
class Workspace {
public:
    explicit Workspace(int64_t bytes) : memory_(static_cast<uint8_t*>(std::aligned_alloc(64, bytes))) {
        std::memset(memory_, 0xff, bytes);
    }
    ~Workspace() { std::free(memory_); }
    Workspace(const Workspace&) = delete;
    Workspace& operator=(const Workspace&) = delete;

    uint8_t* memory() const { return memory_; }

private:
    uint8_t* memory_;
};

struct Results {
    std::vector<float> residual, logits;
    std::vector<int64_t> tokens, tokens_at_once;
    std::vector<CacheMemory> cache;
};

// output_rows: see Rows::step.
Results run(const Model& model, const Rows& rows, const std::vector<int64_t>* output_rows, std::vector<CacheMemory> cache,
            int threads) {
    const quantgate::Decoder decoder = model.decoder();
    std::vector<quantgate::LayerCache> layers;
    for (CacheMemory& layer : cache) layers.push_back(layer.view());
    const quantgate::Step step = rows.step(layers.data(), output_rows);
    const int64_t count = step.output_count;
    std::vector<float> residual(step.rows * HIDDEN, NAN), logits(count * VOCABULARY, NAN);
    std::vector<int64_t> tokens(count, -1);
    {
        const Workspace workspace(quantgate_step_bytes(&decoder, step.rows, threads));
        quantgate_decoder_step(&decoder, &step, residual.data(), workspace.memory(), threads);
    }
    quantgate::Head head{model.head.view(false), nullptr, model.final_norm.data(), decoder.norm_eps};
    std::optional<Screen> made;
    quantgate::HeadScreen screen{};
    if (head.weight.form == Form::BFLOAT16) {
        screen = made.emplace(model.head).view();
        head.screen = &screen;
    }
    for (const bool best : {false, true}) {
        const Workspace workspace(quantgate_head_bytes(&head, count, threads));
        quantgate_head(&head, residual.data(), count, best ? nullptr : logits.data(), best ? tokens.data() : nullptr,
                       workspace.memory(), threads);
    }
    // Once more, in one call: it writes the same keys and values again.
    std::vector<int64_t> tokens_at_once(count, -1);
    const Workspace workspace(quantgate_step_tokens_bytes(&decoder, &head, &step, threads));
    quantgate_step_tokens(&decoder, &head, &step, tokens_at_once.data(), workspace.memory(), threads);
    return {residual, logits, tokens, tokens_at_once, cache};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

bool finite(const std::vector<float>& numbers) {
    for (const float number : numbers) {
        if (!std::isfinite(number)) return false;
    }
    return true;
}

bool greatest_first(const Results& results) {
    for (size_t row = 0; row < results.tokens.size(); ++row) {
        const float* logits = results.logits.data() + row * VOCABULARY;
        if (std::max_element(logits, logits + VOCABULARY) - logits != results.tokens[row]) return false;
    }
    return true;
}

void require(bool holds, const char* what, const char* step, const Shape& shape, bool int8, int threads) {
    if (holds) return;
    std::printf("%s, form %d, heads of %d, ffn of %d, %s, %s cache, %d threads: %s\n", step,
                static_cast<int>(shape.form), static_cast<int>(shape.head_dim), static_cast<int>(shape.ffn),
                shape.with_biases ? "biases and orders" : "neither biases nor orders", int8 ? "int8" : "16-bit", threads, what);
    std::exit(1);
}

struct NamedStep {
    const char* name;
    std::vector<Sequence> sequences;
};

std::vector<NamedStep> steps() {
    std::vector<Sequence> twenty;
    for (int64_t context = 1; context <= 20; ++context) twenty.push_back({context * 7 % 41 + 1, 1});
    return {{"a decode", {{37, 1}}},
            {"3 decodes", {{1, 1}, {17, 1}, {40, 1}}},
            {"4 decodes", {{2, 1}, {33, 1}, {16, 1}, {5, 1}}},
            {"20 decodes", twenty},
            {"a decode that members share", {{300, 1}}},
            {"a shared decode beside others", {{200, 1}, {9, 6}, {3, 1}}},
            {"a prefill of 5", {{5, 5}}},
            {"a prefill of 40", {{47, 40}}},
            {"a prefill of 100", {{101, 100}}},
            {"prefills and decodes", {{9, 6}, {21, 1}, {3, 3}, {1, 1}}}};
}

void run_all(const Shape& shape) {
    const Model model(shape);
    for (const NamedStep& step : steps()) {
        const Rows rows(step.sequences);
        const std::vector<int64_t> ends = rows.ends();
        for (const bool int8 : {false, true}) {
            std::vector<CacheMemory> cache;
            for (int64_t layer = 0; layer < LAYERS; ++layer) cache.emplace_back(rows, shape.head_dim, int8);
            // What is read of a step has nothing to do with the coding of its cache: one coding has all rows read, the
            // other one each sequence's last.
            const std::vector<int64_t>* output_rows = int8 ? &ends : nullptr;
            const Results alone = run(model, rows, output_rows, cache, 1);
            const auto require_of = [&](bool holds, int threads, const char* what) {
                require(holds, what, step.name, shape, int8, threads);
            };
            require_of(finite(alone.residual) && finite(alone.logits), 1, "reads what nothing has been written to");
            require_of(alone.tokens_at_once == alone.tokens, 1, "other tokens in one call than in two");
            require_of(greatest_first(alone), 1, "a best token has not the greatest logit");
            for (const int threads : {2, 3}) {
                const Results team = run(model, rows, output_rows, cache, threads);
                require_of(same_bits(team.residual, alone.residual), threads, "another residual than of one thread");
                require_of(same_bits(team.logits, alone.logits), threads, "other logits than of one thread");
                require_of(team.tokens == alone.tokens, threads, "other tokens than of one thread");
                require_of(team.tokens_at_once == alone.tokens, threads, "other tokens in one call");
                require_of(team.cache == alone.cache, threads, "another cache than of one thread");
            }
        }
    }
}

}  // namespace
}  // namespace sanitized

int main() {
    using sanitized::Form;
    sanitized::use_threads();
    for (const Form form : {Form::BFLOAT16, Form::INT8, Form::INT4, Form::QUADS, Form::INT8_GROUPS}) {
        for (const int64_t head_dim : {8, 12}) {
            // 41 is odd and more than a row has elsewhere: nothing but the product's own zeros follows it.
            for (const int64_t ffn : {24, 33, 41}) {
                for (const bool additions : {false, true}) {
                    sanitized::run_all({form, head_dim, ffn, additions, additions, additions});
                }
            }
        }
    }
    std::puts("finished");
}
