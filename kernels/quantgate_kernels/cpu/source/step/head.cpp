// The final norm and the head, for the rows that are sampled: logits in float32, or only the best token of each row.
// Bound: reads the head once for every 12 rows.
#include <cmath>
#include <limits>

#include "common/team.h"
#include "step/finishes.h"
#include "step/input_rows.h"
#include "step/products.h"
#include "step/workspace.h"

namespace quantgate {
namespace {

struct Head {
    PanelWeight weight;
    const float* norm;
    float eps;
};

// The greatest logit so far. Of equal ones the first stays; a NaN, as in torch's argmax, is greater than any number.
struct Best {
    float logit;
    int64_t token;

    void look_at(float other, int64_t other_token) {
        if (token >= 0 && !(other > logit) && !(std::isnan(other) && !std::isnan(logit))) return;
        logit = other;
        token = other_token;
    }
};

struct HeadWorkspace {
    RowBuffer shared, own{};
    BFloat16* scratch = nullptr;
    // [members][rows]: what each member has found.
    Best* best;
    int64_t used;

    HeadWorkspace(uint8_t* buffer, int64_t hidden, int64_t rows, int64_t members, int64_t member) {
        Carver carver(buffer);
        shared = carver.take_rows(rows, hidden);
        best = carver.take<Best>(rows * members);
        for (int64_t index = 0; index < members; ++index) {
            const RowBuffer rows_of_it = carver.take_rows(ROWS_FOR_EACH_MEMBER, hidden);
            BFloat16* scratch_of_it = carver.take<BFloat16>(hidden);
            if (index == member) own = rows_of_it, scratch = scratch_of_it;
        }
        used = carver.used();
    }
};

void find_best(const Member& member, const Head& head, const InputRows& inputs, int64_t members, Best* found,
               int64_t* tokens) {
    const int64_t rows = inputs.count;
    Best* mine = found + member.index * rows;
    for (int64_t row = 0; row < rows; ++row) mine[row] = {-std::numeric_limits<float>::infinity(), -1};
    multiply(member, head.weight, inputs, [&](int64_t panel, int64_t row, const Lanes* sums) {
        const PanelPlace place(head.weight, panel);
        float logits[PANEL_OUTPUTS];
        std::memcpy(logits, sums, sizeof logits);
        float greatest = logits[0];
        bool numbers = greatest == greatest;
        for (int64_t o = 1; o < place.outputs; ++o) {
            greatest = logits[o] > greatest ? logits[o] : greatest;
            numbers = numbers && logits[o] == logits[o];
        }
        // Most panels have nothing better, and no token of theirs need be looked at.
        if (numbers && mine[row].token >= 0 && !(greatest > mine[row].logit)) return;
        for (int64_t o = 0; o < place.outputs; ++o) mine[row].look_at(logits[o], place.first + o);
    });
    member.meet();
    if (member.index != 0) return;
    for (int64_t row = 0; row < rows; ++row) {
        Best best = found[row];
        for (int64_t other = 1; other < members; ++other) {
            const Best& theirs = found[other * rows + row];
            if (theirs.token < 0) continue;
            // Which member has which panels is chance: of equal finds the one with the earlier token counts.
            const bool equal = theirs.logit == best.logit || (std::isnan(theirs.logit) && std::isnan(best.logit));
            if (equal && theirs.token < best.token) best = theirs;
            best.look_at(theirs.logit, theirs.token);
        }
        tokens[row] = best.token;
    }
}

}  // namespace
}  // namespace quantgate

extern "C" int64_t quantgate_head_bytes(int64_t hidden, int64_t rows, int threads) {
    return quantgate::HeadWorkspace(nullptr, hidden, rows, threads, 0).used;
}

// residual: float32 [rows, hidden]. logits: float32 [rows, vocabulary], or null; then tokens, int64 [rows], gets the best
// token of each row. workspace: quantgate_head_bytes, on a cache line of its own.
extern "C" void quantgate_head(const quantgate::PanelWeight* weight, const float* norm, float eps,
                               const float* residual, int64_t rows, float* logits, int64_t* tokens,
                               uint8_t* workspace, int threads) {
    using namespace quantgate;
    const Head head{*weight, norm, eps};
    const int64_t hidden = weight->inputs;
    const NormedRows normed{residual, norm, hidden, eps};
    auto run = [&](const Member& member) {
        const HeadWorkspace own(workspace, hidden, rows, member.count, member.index);
        const RowPlaces places{own.shared, own.own, own.scratch};
        const InputRows inputs = inputs_of(member, normed, head.weight.form, rows, places);
        if (logits == nullptr) return find_best(member, head, inputs, member.count, own.best, tokens);
        multiply(member, head.weight, inputs, [&](int64_t panel, int64_t row, const Lanes* sums) {
            store_wide(sums, PanelPlace(head.weight, panel), logits + row * head.weight.outputs);
        });
    };
    run_as_team(threads, run);
}
