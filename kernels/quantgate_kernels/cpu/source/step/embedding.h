// Rows of the embedding, which lies in panels because the head that is tied to it multiplies them.
#pragma once

#include <cstring>

#include "common/number.h"
#include "products/panels.h"

namespace quantgate {

// weight: bfloat16 [vocabulary, hidden] in panels -> float32 [hidden].
inline void embed(const PanelWeight& weight, int64_t token, float* row) {
    constexpr int64_t step = step_bytes(Form::BFLOAT16) / 2;
    const auto* panel = reinterpret_cast<const BFloat16*>(weight.panel(token / PANEL_OUTPUTS));
    const BFloat16* pair = panel + token % PANEL_OUTPUTS * 2;
    for (int64_t i = 0; i < weight.inputs; ++i) row[i] = to_float(pair[i / 2 * step + i % 2]);
}

}  // namespace quantgate
