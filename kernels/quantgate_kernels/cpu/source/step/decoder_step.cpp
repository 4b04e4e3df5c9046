// All layers of a step in one parallel region: token ids in, the residual after the last layer out, or the best token
// after each row that is read.
//
// Rows whose output nobody reads end in the last layer once their keys and values are written: of a prompt, that is all
// but the last.
// The residual stays in float32; what products multiply is rounded to bfloat16, as the layers computed one by one do.
// Bound: reads every weight once for each tile of rows (from memory once), and each sequence's keys and values once.
#include <algorithm>

#include "common/team.h"
#include "step/best_tokens.h"
#include "step/decoder.h"
#include "step/embedding.h"
#include "step/finishes.h"
#include "step/input_rows.h"
#include "step/layer_attention.h"
#include "step/products.h"
#include "step/step_workspace.h"

namespace quantgate {
namespace {

// A thread keeps its own from step to step. Not in a header: what is declared there is one for all libraries of a
// process, and a library for other instructions has another layout of it.
AttentionStepScratch<BFloat16>& scratch_of_thread() {
    thread_local AttentionStepScratch<BFloat16> scratch;
    return scratch;
}

class StepRun {
public:
    StepRun(const Decoder& decoder, const Step& step, const AttentionPlan& plan, float* residual, uint8_t* buffer,
            const Member& member)
        : decoder_(decoder), step_(step), plan_(plan), residual_(residual), member_(member), rows_(step.rows),
          workspace_(buffer, decoder, step.rows, member.count, member.index),
          places_{workspace_.shared, workspace_.own, workspace_.scratch}, scratch_(scratch_of_thread()) {}

    void run() {
        begin();
        for (int64_t layer = 0; layer < decoder_.layers; ++layer) {
            const LayerWeights& weights = decoder_.weights[layer];
            project_heads(weights);
            LayerAttention{decoder_, step_, weights, step_.cache[layer], workspace_, plan_, scratch_}.run(member_);
            member_.meet();
            if (layer + 1 == decoder_.layers) keep_outputs();
            if (rows_ == 0) return;
            add_projection(workspace_.attended, weights.attention_output);
            gate(weights);
            add_projection(workspace_.gated, weights.down);
        }
    }

private:
    void begin() const {
        member_.split(step_.sequences, [&](int64_t first, int64_t last) {
            for (int64_t sequence = first; sequence < last; ++sequence) place_rows(sequence);
        });
        member_.split(step_.rows, [&](int64_t first, int64_t last) {
            for (int64_t row = first; row < last; ++row) {
                embed(decoder_.embedding, step_.token_ids[row], residual_ + row * decoder_.hidden);
            }
        });
        member_.meet();
    }

    void place_rows(int64_t sequence) const {
        const int64_t first = step_.query_starts[sequence], rows = step_.query_starts[sequence + 1] - first;
        const int64_t before = step_.context_lens[sequence] - rows;
        find_slots(step_.block_tables + sequence * step_.max_blocks, before, rows, step_.block_size,
                   workspace_.slots + first);
        for (int64_t row = 0; row < rows; ++row) workspace_.positions[first + row] = before + row;
    }

    // Moves the rows that are read later to the front, and goes on with these alone. They ascend, so that none is
    // written over before it has moved.
    void keep_outputs() {
        if (step_.output_count == step_.rows) return;
        if (member_.index == 0) {
            for (int64_t row = 0; row < step_.output_count; ++row) {
                const int64_t from = step_.output_rows[row];
                std::copy_n(residual_ + from * decoder_.hidden, decoder_.hidden, residual_ + row * decoder_.hidden);
                std::copy_n(workspace_.attended.row(from), workspace_.attended.size, workspace_.attended.row(row));
            }
        }
        rows_ = step_.output_count;
        member_.meet();
    }

    template <class Source>
    InputRows inputs_for(const Projection& projection, const Source& source) const {
        const Form form = projection.weight.form;
        if (projection.order == nullptr) return inputs_of(member_, source, form, rows_, places_);
        const ReorderedRows<Source> rows{source, projection.order, workspace_.unordered, source.size};
        return inputs_of(member_, rows, form, rows_, places_);
    }

    NormedRows normed(const float* norm) const { return {residual_, norm, decoder_.hidden, decoder_.norm_eps}; }

    void project_heads(const LayerWeights& weights) const {
        const PanelWeight& weight = weights.query_key_value.weight;
        const InputRows inputs = inputs_for(weights.query_key_value, normed(weights.attention_norm));
        multiply(member_, weight, inputs, [&](int64_t panel, int64_t row, const Lanes* sums) {
            store_rounded(sums, PanelPlace(weight, panel),
                          workspace_.query_key_values + row * decoder_.query_key_values());
        });
        member_.meet();
    }

    void add_projection(const FinishedRows& finished, const Projection& projection) const {
        const PanelWeight& weight = projection.weight;
        const InputRows inputs = inputs_for(projection, finished);
        multiply(member_, weight, inputs, [&](int64_t panel, int64_t row, const Lanes* sums) {
            add_to_residual(sums, PanelPlace(weight, panel), residual_ + row * decoder_.hidden);
        });
        member_.meet();
    }

    void gate(const LayerWeights& weights) const {
        const PanelWeight& weight = weights.gate_up.weight;
        const InputRows inputs = inputs_for(weights.gate_up, normed(weights.ffn_norm));
        multiply(member_, weight, inputs, [&](int64_t panel, int64_t row, const Lanes* sums) {
            store_gated(sums, panel, decoder_.ffn, workspace_.gated.row(row));
        });
        member_.meet();
    }

    const Decoder& decoder_;
    const Step& step_;
    const AttentionPlan& plan_;
    float* residual_;
    const Member& member_;
    // Rows that are still computed.
    int64_t rows_;
    const StepWorkspace workspace_;
    const RowPlaces places_;
    AttentionStepScratch<BFloat16>& scratch_;
};

// The attention of a step's layers, in tasks. The caller's thread keeps the list's memory from step to step.
const AttentionPlan& planned(const Decoder& decoder, const Step& step, int threads) {
    const Sequences sequences{step.query_starts, step.context_lens, step.block_tables, step.sequences};
    const AttentionShape shape{decoder.heads,   decoder.kv_heads, decoder.head_dim,       step.block_size,
                               step.max_blocks, 0,                decoder.attention_scale};
    thread_local AttentionPlan plan;
    plan.list(sequences, shape, threads);
    return plan;
}

// What the layers work in, then the head, and the residual between the two.
struct TokensWorkspace {
    uint8_t *layers, *search;
    float* residual;
    int64_t used;

    TokensWorkspace(uint8_t* buffer, const Decoder& decoder, const Head& head, const Step& step, int threads) {
        Carver carver(buffer);
        layers = carver.take<uint8_t>(StepWorkspace(nullptr, decoder, step.rows, threads, 0).used);
        search = carver.take<uint8_t>(HeadWorkspace(nullptr, head.weight, step.output_count, threads, 0).used);
        residual = carver.take<float>(step.rows * decoder.hidden);
        used = carver.used();
    }
};

}  // namespace
}  // namespace quantgate

extern "C" int64_t quantgate_step_bytes(const quantgate::Decoder* decoder, int64_t rows, int threads) {
    return quantgate::StepWorkspace(nullptr, *decoder, rows, threads, 0).used;
}

// residual: float32 [rows, hidden]; the first output_count rows are what the last layer leaves. workspace:
// quantgate_step_bytes for these rows and threads, on a cache line of its own.
extern "C" void quantgate_decoder_step(const quantgate::Decoder* decoder, const quantgate::Step* step, float* residual,
                                       uint8_t* workspace, int threads) {
    using namespace quantgate;
    const AttentionPlan& plan = planned(*decoder, *step, threads);
    auto run = [&](const Member& member) { StepRun(*decoder, *step, plan, residual, workspace, member).run(); };
    run_as_team(threads, run);
}

extern "C" int64_t quantgate_step_tokens_bytes(const quantgate::Decoder* decoder, const quantgate::Head* head,
                                               const quantgate::Step* step, int threads) {
    return quantgate::TokensWorkspace(nullptr, *decoder, *head, *step, threads).used;
}

// tokens: int64 [output_count], the best token after each row that is read. workspace: quantgate_step_tokens_bytes, on a
// cache line of its own.
extern "C" void quantgate_step_tokens(const quantgate::Decoder* decoder, const quantgate::Head* head,
                                      const quantgate::Step* step, int64_t* tokens, uint8_t* workspace, int threads) {
    using namespace quantgate;
    const AttentionPlan& plan = planned(*decoder, *step, threads);
    const TokensWorkspace places(workspace, *decoder, *head, *step, threads);
    auto run = [&](const Member& member) {
        // All members have met when the last layer is done.
        StepRun(*decoder, *step, plan, places.residual, places.layers, member).run();
        if (step->output_count == 0) return;
        find_best_tokens(member, *head, places.residual, step->output_count, places.search, tokens);
    };
    run_as_team(threads, run);
}
