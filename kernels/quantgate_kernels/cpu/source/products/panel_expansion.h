// A panel of codes as pairs of bfloat16, expanded once for many rows and not again in every tile. Scales are left out:
// they multiply sums, as they do where codes are expanded in registers, so that both ways give the same bits.
#pragma once

#include <cstdint>
#include <cstring>

#include "products/panel_tile.h"

namespace quantgate {

// panel: INT8 or INT4 -> pairs: as a panel of BFLOAT16 stores them, of as many inputs as the panel's steps take.
inline void expand_panel(Form form, const uint8_t* panel, int64_t steps, uint8_t* pairs) {
    const auto put = [&](const BitLanes& expanded) {
        std::memcpy(pairs, &expanded, sizeof expanded);
        pairs += sizeof expanded;
    };
    if (form == Form::INT8) {
        for (int64_t unit = 0; unit < steps * PANEL_UNITS; ++unit, panel += 2 * LANES) {
            put(pairs_of_codes(reinterpret_cast<const int8_t*>(panel)));
        }
        return;
    }
    const BitLanes table = load_bits(NIBBLES.steps);
    for (int64_t step = 0; step < steps; ++step, panel += step_bytes(Form::INT4)) {
        const BitLanes words[PANEL_UNITS] = {load_bits(panel), load_bits(panel + 64)};
        for (int unit = 0; unit < PANEL_UNITS; ++unit) put(pairs_of_nibbles<0>(words[unit], table));
        for (int unit = 0; unit < PANEL_UNITS; ++unit) put(pairs_of_nibbles<1>(words[unit], table));
        for (int unit = 0; unit < PANEL_UNITS; ++unit) put(pairs_of_nibbles<2>(words[unit], table));
        for (int unit = 0; unit < PANEL_UNITS; ++unit) put(pairs_of_nibbles<3>(words[unit], table));
    }
}

// Of an expanded INT4 panel; group_steps: of pairs.
template <int ROWS>
void add_panel_groups(const uint8_t* pairs, const BFloat16* group_scales, int64_t groups, int64_t group_steps,
                      const uint8_t* inputs, int64_t row_bytes, Ahead ahead, Lanes* sums) {
    TileInputs<ROWS> rows(inputs, row_bytes);
    for (int64_t group = 0; group < groups; ++group) {
        Lanes partial[1][ROWS][PANEL_UNITS] = {};
        for (int64_t step = 0; step < group_steps; ++step, pairs += step_bytes(Form::BFLOAT16)) {
            ahead.fetch<Form::BFLOAT16, false>(pairs);
            const BitLanes weights[PANEL_UNITS] = {load_bits(pairs), load_bits(pairs + 64)};
            for (int row = 0; row < ROWS; ++row) {
                const uint32_t pair = rows.word(row, 0);
                for (int unit = 0; unit < PANEL_UNITS; ++unit) {
                    partial[0][row][unit] = add_pairs(partial[0][row][unit], weights[unit], pair);
                }
            }
            rows.advance(4);
        }
        add_group(partial, group_scales + group * PANEL_OUTPUTS, group == 0, sums);
    }
}

}  // namespace quantgate
