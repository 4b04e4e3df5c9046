// What becomes of a panel's 32 sums of a row.
#pragma once

#include <algorithm>
#include <cstring>

#include "common/bfloat16_lanes.h"
#include "common/lanes.h"
#include "common/number.h"
#include "pointwise/silu.h"
#include "products/panels.h"

namespace quantgate {

// A panel's place among the outputs of its weight, of which the last panel may have fewer than 32.
struct PanelPlace {
    int64_t first, outputs;

    PanelPlace(const PanelWeight& weight, int64_t panel)
        : first(panel * PANEL_OUTPUTS), outputs(std::min(PANEL_OUTPUTS, weight.outputs - first)) {}
};

// Rounded to bfloat16: queries, keys and values.
inline void store_rounded(const Lanes* sums, const PanelPlace& place, BFloat16* row) {
    BFloat16* to = row + place.first;
    if (place.outputs == PANEL_OUTPUTS) {
        for (int64_t unit = 0; unit < PANEL_UNITS; ++unit) store(sums[unit], to + unit * LANES);
        return;
    }
    float wide[PANEL_OUTPUTS];
    std::memcpy(wide, sums, sizeof wide);
    for (int64_t o = 0; o < place.outputs; ++o) to[o] = rounded<BFloat16>(wide[o]);
}

// Added to the residual, which stays in float32.
inline void add_to_residual(const Lanes* sums, const PanelPlace& place, float* row) {
    float* to = row + place.first;
    if (place.outputs == PANEL_OUTPUTS) {
        for (int64_t unit = 0; unit < PANEL_UNITS; ++unit) store(load(to + unit * LANES) + sums[unit], to + unit * LANES);
        return;
    }
    float wide[PANEL_OUTPUTS];
    std::memcpy(wide, sums, sizeof wide);
    for (int64_t o = 0; o < place.outputs; ++o) to[o] += wide[o];
}

// silu of a split panel's 16 gates times its 16 ups, rounded to bfloat16. ffn: gates in all.
inline void store_gated(const Lanes* sums, int64_t panel, int64_t ffn, BFloat16* row) {
    const Lanes opened = silu_and_mul(sums[0], sums[1]);
    const int64_t first = panel * LANES, outputs = std::min(LANES, ffn - first);
    if (outputs == LANES) return store(opened, row + first);
    float wide[LANES];
    store(opened, wide);
    for (int64_t o = 0; o < outputs; ++o) row[first + o] = rounded<BFloat16>(wide[o]);
}

// Logits, as they are.
inline void store_wide(const Lanes* sums, const PanelPlace& place, float* row) {
    std::memcpy(row + place.first, sums, place.outputs * sizeof(float));
}

}  // namespace quantgate
