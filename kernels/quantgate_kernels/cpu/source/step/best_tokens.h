// The best token of each row, without writing logits out.
// Bound: reads the head once for every tile of rows; for few rows, the screen's half of it instead, and the panels that it
// leaves.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/team.h"
#include "pointwise/norm_row.h"
#include "step/finishes.h"
#include "step/head_screen.h"
#include "step/head_workspace.h"
#include "step/input_rows.h"
#include "step/products.h"

namespace quantgate {

// In place of the best token of a row whose logits tell nothing.
constexpr int64_t NO_BEST_TOKEN = -1;

// The search of a team for the best token of each row. Its results stand when all members have come back from it.
// residual: of the rows, what the norm before the head has scaled.
class BestTokens {
public:
    BestTokens(const Member& member, const Head& head, const float* residual, const InputRows& inputs,
               const HeadWorkspace& workspace)
        : member_(member), head_(head), residual_(residual), inputs_(inputs), workspace_(workspace),
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
            tokens[row] = std::isfinite(best.logit) && norm_is_finite(row) ? best.token : NO_BEST_TOKEN;
        }
    }

    // Of a row whose squares overflow the norm makes 0, and logits that look like any.
    bool norm_is_finite(int64_t row) const {
        const int64_t hidden = head_.weight.inputs;
        return std::isfinite(sum_of_squares(residual_ + row * hidden, hidden));
    }

    const Member& member_;
    const Head& head_;
    const float* residual_;
    const InputRows& inputs_;
    const HeadWorkspace& workspace_;
    Best* mine_;
};

// residual: float32 [rows, hidden], which all members may read. workspace: HeadWorkspace's. tokens: int64 [rows].
inline void find_best_tokens(const Member& member, const Head& head, const float* residual, int64_t rows,
                             uint8_t* workspace, int64_t* tokens) {
    const HeadWorkspace own(workspace, head.weight, rows, member.count, member.index);
    const InputRows inputs = head_inputs(member, head, residual, rows, own);
    BestTokens(member, head, residual, inputs, own).find(tokens);
}

}  // namespace quantgate
