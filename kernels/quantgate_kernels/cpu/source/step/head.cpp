// The final norm and the head, for rows that are sampled: logits in float32, or only the best token of each row.
// Bound: reads the head once for every tile of rows; best tokens as best_tokens.h says.
#include "common/team.h"
#include "step/best_tokens.h"
#include "step/finishes.h"
#include "step/head_workspace.h"
#include "step/products.h"

extern "C" int64_t quantgate_head_bytes(const quantgate::Head* head, int64_t rows, int threads) {
    return quantgate::HeadWorkspace(nullptr, head->weight, rows, threads, 0).used;
}

// residual: float32 [rows, hidden]. logits: float32 [rows, vocabulary], or null; then tokens, int64 [rows], gets the best
// token of each row, or NO_BEST_TOKEN. workspace: quantgate_head_bytes, on a cache line of its own.
extern "C" void quantgate_head(const quantgate::Head* head, const float* residual, int64_t rows, float* logits,
                               int64_t* tokens, uint8_t* workspace, int threads) {
    using namespace quantgate;
    auto run = [&](const Member& member) {
        if (logits == nullptr) return find_best_tokens(member, *head, residual, rows, workspace, tokens);
        const HeadWorkspace own(workspace, head->weight, rows, member.count, member.index);
        const InputRows inputs = head_inputs(member, *head, residual, rows, own);
        multiply(member, head->weight, inputs, [&](int64_t panel, int64_t row, const Lanes* sums) {
            store_wide(sums, PanelPlace(head->weight, panel), logits + row * head->weight.outputs);
        });
    };
    run_as_team(threads, run);
}
