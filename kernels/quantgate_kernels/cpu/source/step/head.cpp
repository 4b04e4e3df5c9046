// The final norm and the head, for the rows that are sampled: logits in float32, or only the best token of each row.
// Bound: reads the head once for every 12 rows; for the best tokens of few rows, the screen's half of it instead, and the
// panels that it leaves.
#include <cmath>
#include <limits>

#include "common/team.h"
#include "step/finishes.h"
#include "step/head_screen.h"
#include "step/input_rows.h"
#include "step/products.h"
#include "step/workspace.h"

namespace quantgate {
namespace {

struct Head {
    PanelWeight weight;
    // Null where there is none.
    const HeadScreen* screen;
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

// More rows are too much arithmetic, in two digits each, beside the reading that a screen saves. Each member prepares all of
// them for itself.
constexpr int64_t MOST_SCREENED_ROWS = 4;
static_assert(MOST_SCREENED_ROWS <= ROWS_FOR_EACH_MEMBER);
static_assert(2 * MOST_SCREENED_ROWS < ROWS_WORTH_SHARING, "one member must have both digits of a panel");

constexpr bool worth_screening(int64_t rows) { return rows <= MOST_SCREENED_ROWS; }

// most: [rows][panels], what no logit of the panel is above. least: [members][rows], what some logit of the panels that a
// member has screened is not below. digits: this member's.
struct ScreenWorkspace {
    float *most, *least;
    RowBuffer digits{};

    ScreenWorkspace(Carver& carver, const PanelWeight& weight, int64_t rows, int64_t members, int64_t member)
        : most(carver.take<float>(rows * weight.panels())), least(carver.take<float>(rows * members)) {
        for (int64_t index = 0; index < members; ++index) {
            const RowBuffer digits_of_it = carver.take_rows(2 * rows, weight.inputs);
            if (index == member) digits = digits_of_it;
        }
    }
};

struct HeadWorkspace {
    RowBuffer shared, own{};
    BFloat16* scratch = nullptr;
    // [members][rows]: what each member has found.
    Best* best;
    ScreenWorkspace screen;
    int64_t used;

    HeadWorkspace(uint8_t* buffer, const PanelWeight& weight, int64_t rows, int64_t members, int64_t member)
        : HeadWorkspace(Carver(buffer), weight, rows, members, member) {}

private:
    HeadWorkspace(Carver carver, const PanelWeight& weight, int64_t rows, int64_t members, int64_t member)
        : shared(carver.take_rows(rows, weight.inputs)), best(carver.take<Best>(rows * members)),
          screen(carver, weight, worth_screening(rows) ? rows : 0, members, member) {
        for (int64_t index = 0; index < members; ++index) {
            const RowBuffer rows_of_it = carver.take_rows(ROWS_FOR_EACH_MEMBER, weight.inputs);
            BFloat16* scratch_of_it = carver.take<BFloat16>(weight.inputs);
            if (index == member) own = rows_of_it, scratch = scratch_of_it;
        }
        used = carver.used();
    }
};

// The search of a team for the best token of each row.
class BestTokens {
public:
    BestTokens(const Member& member, const Head& head, const InputRows& inputs, const HeadWorkspace& workspace)
        : member_(member), head_(head), inputs_(inputs), workspace_(workspace),
          mine_(workspace.best + member.index * inputs.count) {}

    void find(int64_t* tokens) const {
        for (int64_t row = 0; row < inputs_.count; ++row) mine_[row] = {-std::numeric_limits<float>::infinity(), -1};
        if (head_.screen != nullptr && worth_screening(inputs_.count)) {
            screen();
            member_.meet();
            look_at_what_is_left();
        } else {
            multiply(member_, head_.weight, inputs_, [&](int64_t panel, int64_t row, const Lanes* sums) {
                look_at(panel, row, sums);
            });
        }
        member_.meet();
        if (member_.index == 0) decide(tokens);
    }

private:
    // Leaves how far each panel's logits can reach.
    void screen() const {
        const ScreenWorkspace& places = workspace_.screen;
        const int64_t rows = inputs_.count, panels = head_.weight.panels();
        RowBound bounds[MOST_SCREENED_ROWS];
        for (int64_t row = 0; row < rows; ++row) {
            const auto* numbers = reinterpret_cast<const BFloat16*>(inputs_.numbers + row * inputs_.row_bytes);
            bounds[row] = write_digits(numbers, head_.weight.inputs, head_.screen->longest, places.digits, row);
        }
        float* least = places.least + member_.index * rows;
        std::fill(least, least + rows, -std::numeric_limits<float>::infinity());
        Lanes upper[PANEL_UNITS];
        multiply(member_, head_.screen->codes, places.digits.view(2 * rows), [&](int64_t panel, int64_t digit, const Lanes* sums) {
            // A row's upper digits come right before its lower ones.
            if (digit % 2 == 0) {
                std::copy(sums, sums + PANEL_UNITS, upper);
                return;
            }
            const int64_t row = digit / 2;
            const PanelReach reach = reach_of(*head_.screen, panel, bounds[row], upper, sums);
            places.most[row * panels + panel] = reach.most;
            least[row] = std::max(least[row], reach.least);
        });
    }

    // Exactly, and all rows together, as without a screen: the same bits come of it.
    void look_at_what_is_left() const {
        const ScreenWorkspace& places = workspace_.screen;
        const int64_t rows = inputs_.count, panels = head_.weight.panels();
        float least[MOST_SCREENED_ROWS];
        for (int64_t row = 0; row < rows; ++row) {
            least[row] = places.least[row];
            for (int64_t other = 1; other < member_.count; ++other) {
                least[row] = std::max(least[row], places.least[other * rows + row]);
            }
        }
        int64_t left = 0;
        for (int64_t panel = 0; panel < panels; ++panel) {
            bool out = true;
            for (int64_t row = 0; row < rows; ++row) out = out && places.most[row * panels + panel] < least[row];
            if (out || left++ % member_.count != member_.index) continue;
            multiply_panel(head_.weight, panel, inputs_, 0, rows,
                           [&](int64_t row, const Lanes* sums) { look_at(panel, row, sums); });
        }
    }

    void look_at(int64_t panel, int64_t row, const Lanes* sums) const {
        const PanelPlace place(head_.weight, panel);
        float logits[PANEL_OUTPUTS];
        std::memcpy(logits, sums, sizeof logits);
        float greatest = logits[0];
        bool numbers = greatest == greatest;
        for (int64_t o = 1; o < place.outputs; ++o) {
            greatest = logits[o] > greatest ? logits[o] : greatest;
            numbers = numbers && logits[o] == logits[o];
        }
        // Most panels have nothing better, and no token of theirs need be looked at.
        if (numbers && mine_[row].token >= 0 && !(greatest > mine_[row].logit)) return;
        for (int64_t o = 0; o < place.outputs; ++o) mine_[row].look_at(logits[o], place.first + o);
    }

    void decide(int64_t* tokens) const {
        const int64_t rows = inputs_.count;
        for (int64_t row = 0; row < rows; ++row) {
            Best best = workspace_.best[row];
            for (int64_t other = 1; other < member_.count; ++other) {
                const Best& theirs = workspace_.best[other * rows + row];
                if (theirs.token < 0) continue;
                // Which member has which panels is chance: of equal finds the one with the earlier token counts.
                const bool equal = theirs.logit == best.logit || (std::isnan(theirs.logit) && std::isnan(best.logit));
                if (equal && theirs.token < best.token) best = theirs;
                best.look_at(theirs.logit, theirs.token);
            }
            tokens[row] = best.token;
        }
    }

    const Member& member_;
    const Head& head_;
    const InputRows& inputs_;
    const HeadWorkspace& workspace_;
    Best* mine_;
};

}  // namespace
}  // namespace quantgate

extern "C" int64_t quantgate_head_bytes(const quantgate::PanelWeight* weight, int64_t rows, int threads) {
    return quantgate::HeadWorkspace(nullptr, *weight, rows, threads, 0).used;
}

// residual: float32 [rows, hidden]. logits: float32 [rows, vocabulary], or null; then tokens, int64 [rows], gets the best
// token of each row. screen: of this weight, or null; tokens do not depend on it. workspace: quantgate_head_bytes, on a
// cache line of its own.
extern "C" void quantgate_head(const quantgate::PanelWeight* weight, const quantgate::HeadScreen* screen,
                               const float* norm, float eps, const float* residual, int64_t rows, float* logits,
                               int64_t* tokens, uint8_t* workspace, int threads) {
    using namespace quantgate;
    const Head head{*weight, screen, norm, eps};
    const int64_t hidden = weight->inputs;
    const NormedRows normed{residual, norm, hidden, eps};
    auto run = [&](const Member& member) {
        const HeadWorkspace own(workspace, head.weight, rows, member.count, member.index);
        const RowPlaces places{own.shared, own.own, own.scratch};
        const InputRows inputs = inputs_of(member, normed, head.weight.form, rows, places);
        if (logits == nullptr) return BestTokens(member, head, inputs, own).find(tokens);
        multiply(member, head.weight, inputs, [&](int64_t panel, int64_t row, const Lanes* sums) {
            store_wide(sums, PanelPlace(head.weight, panel), logits + row * head.weight.outputs);
        });
    };
    run_as_team(threads, run);
}
