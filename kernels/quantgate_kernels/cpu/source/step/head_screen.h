// Which panels of a head can hold a row's best token: found by a copy of the head in INT8, which takes half as long to
// read as the head, and proven, so that only those panels have to be read.
//
// A row X is coded as two digits, Xq, and an output W as one, Wq; X.W - Xq.Wq = Xq.(W - Wq) + (X - Xq).W. By Cauchy and
// Schwarz this is at most |Xq| |W - Wq| + |X - Xq| |W|: two numbers of the row times two of the output. Roundings in
// float32 are added by Higham, Accuracy and Stability of Numerical Algorithms (2nd ed., chapter 3): n of them, in any order,
// are off by at most gamma_n = n u / (1 - n u) of the sum of magnitudes, which is at most |X| |W|.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/lanes.h"
#include "products/panels.h"
#include "step/two_digits.h"

namespace quantgate {

// codes: the head in QUADS. lengths and losses: float32 [panels][32], not less than |W| and |W - Wq| of each output; both
// are infinite where a weight is NaN or huge, and its codes are then zero. longest: the greatest finite length.
struct HeadScreen {
    PanelWeight codes;
    const float *lengths, *losses;
    float longest;
};

// What a panel's approximate logits leave of a row: none of its logits is above `most`, and one of them is not below `least`.
struct PanelReach {
    float most, least;
};

inline PanelReach reach_of(const HeadScreen& screen, int64_t panel, const RowBound& bound, const Lanes* upper,
                           const Lanes* lower) {
    const float* lengths = screen.lengths + panel * PANEL_OUTPUTS;
    const float* losses = screen.losses + panel * PANEL_OUTPUTS;
    float most[PANEL_OUTPUTS], least[PANEL_OUTPUTS];
    for (int64_t unit = 0; unit < PANEL_UNITS; ++unit) {
        const Lanes logits = upper[unit] + lower[unit];
        const Lanes off = load(losses + unit * LANES) * bound.per_loss + load(lengths + unit * LANES) * bound.per_length +
                          bound.always;
        store(logits + off, most + unit * LANES);
        store(logits - off, least + unit * LANES);
    }
    // What fills the last panel has no logits.
    const int64_t outputs = std::min(PANEL_OUTPUTS, screen.codes.outputs - panel * PANEL_OUTPUTS);
    float highest = most[0], surest = least[0];
    if (outputs == PANEL_OUTPUTS) {
#pragma omp simd simdlen(16) reduction(max : highest, surest)
        for (int64_t o = 0; o < PANEL_OUTPUTS; ++o) {
            highest = most[o] > highest ? most[o] : highest;
            surest = least[o] > surest ? least[o] : surest;
        }
        return {highest, surest};
    }
    for (int64_t o = 1; o < outputs; ++o) {
        highest = std::max(highest, most[o]);
        surest = std::max(surest, least[o]);
    }
    return {highest, surest};
}

}  // namespace quantgate
