// A head, and what a search of it or its logits are computed in.
#pragma once

#include <cmath>
#include <cstdint>

#include "products/panels.h"
#include "step/head_screen.h"
#include "step/input_rows.h"
#include "step/products.h"
#include "step/workspace.h"

namespace quantgate {

// norm: of the rows before the head, float32 [hidden]. screen: of this weight, or null; no token depends on it.
struct Head {
    PanelWeight weight;
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

// The final norm's rows, as the head multiplies them. residual: float32 [rows, hidden].
inline InputRows head_inputs(const Member& member, const Head& head, const float* residual, int64_t rows,
                             const HeadWorkspace& workspace) {
    const NormedRows normed{residual, head.norm, head.weight.inputs, head.eps};
    return inputs_of(member, normed, head.weight.form, rows, {workspace.shared, workspace.own, workspace.scratch});
}

}  // namespace quantgate
