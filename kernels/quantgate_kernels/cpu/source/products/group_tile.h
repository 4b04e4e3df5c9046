// Sums of one panel whose groups have scales, for a few rows: a group's sum is multiplied by the group's scale, so that a
// weight is nowhere rounded.
// Bound: as panel_tile.h's.
#pragma once

#include <cstdint>

#include "common/bfloat16_lanes.h"
#include "common/float16_lanes.h"
#include "common/intrinsics.h"
#include "products/ahead.h"
#include "products/group_codes.h"
#include "products/panel_tile.h"
#include "products/panels.h"
#include "products/unit_math.h"

namespace quantgate {

// Scales of a panel's groups, [groups][32]. Which of the two types they have is asked once a group, and not compiled into
// every tile: that is far from the inner loop, and a tile takes time to compile.
struct GroupScales {
    const uint16_t* numbers;
    bool half;

    // Of the group that is pointed to.
    QUANTGATE_INLINED Lanes load(int unit) const {
        const uint16_t* from = numbers + unit * LANES;
        return half ? quantgate::load(reinterpret_cast<const Float16*>(from))
                    : quantgate::load(reinterpret_cast<const BFloat16*>(from));
    }

    QUANTGATE_INLINED void advance() { numbers += PANEL_OUTPUTS; }
};

// The groups of a panel. zeros: [count][32], or none. steps: of each group.
struct PanelGroups {
    GroupScales scales;
    const void* zeros;
    int64_t count, steps;
};

// One pair of each output's codes.
template <int PAIR, class Codes, int PARTS, int ROWS>
QUANTGATE_INLINED void add_pair(const Codes& codes, const TileInputs<ROWS>& rows,
                                Lanes (&partial)[PARTS][ROWS][PANEL_UNITS]) {
    BitLanes weights[PANEL_UNITS];
    for (int unit = 0; unit < PANEL_UNITS; ++unit) weights[unit] = codes.template pairs<PAIR>(unit);
    for (int row = 0; row < ROWS; ++row) {
        const uint32_t pair = rows.word(row, 4 * PAIR);
        for (int unit = 0; unit < PANEL_UNITS; ++unit) {
            Lanes& sum = partial[PAIR % PARTS][row][unit];
            sum = add_pairs(sum, weights[unit], pair);
        }
    }
}

// Adds a group's partial sums times its scales to the sums; those of the first group are the sums so far.
template <int PARTS, int ROWS>
QUANTGATE_INLINED void add_group(const Lanes (&partial)[PARTS][ROWS][PANEL_UNITS], const GroupScales& scales, bool first,
                                 Lanes* sums) {
    for (int unit = 0; unit < PANEL_UNITS; ++unit) {
        const Lanes unit_scales = scales.load(unit);
        for (int row = 0; row < ROWS; ++row) {
            Lanes sum = partial[0][row][unit];
            for (int part = 1; part < PARTS; ++part) sum += partial[part][row][unit];
            Lanes& total = sums[row * PANEL_UNITS + unit];
            total = first ? sum * unit_scales : total + sum * unit_scales;
        }
    }
}

template <class Codes, bool ONCE, int ROWS>
void add_panel_groups(const uint8_t* panel, const PanelGroups& groups, const uint8_t* inputs, int64_t row_bytes,
                      Ahead ahead, Lanes* sums) {
    constexpr int PARTS = partial_sums(ROWS);
    GroupScales scales = groups.scales;
    const uint16_t* const begin = scales.numbers;
    const uint16_t* const end = begin + groups.count * PANEL_OUTPUTS;
    const void* const zeros = groups.zeros;
    const int64_t steps = groups.steps;
    Codes codes;
    TileInputs<ROWS> rows(inputs, row_bytes);
    for (int64_t group = 0; scales.numbers != end; ++group, scales.advance()) {
        codes.begin_group(zeros, group);
        Lanes partial[PARTS][ROWS][PANEL_UNITS] = {};
        for (int64_t step = 0; step < steps; ++step, panel += step_bytes(Codes::FORM)) {
            ahead.fetch<Codes::FORM, ONCE>(panel);
            codes.load(panel);
            add_pair<0>(codes, rows, partial);
            add_pair<1>(codes, rows, partial);
            add_pair<2>(codes, rows, partial);
            add_pair<3>(codes, rows, partial);
            rows.advance(16);
        }
        add_group(partial, scales, scales.numbers == begin, sums);
    }
}

// Of a panel whose codes are expanded, their zeros taken off; a step is one pair.
template <int ROWS>
void add_expanded_groups(const uint8_t* pairs, const PanelGroups& groups, const uint8_t* inputs, int64_t row_bytes,
                         Ahead ahead, Lanes* sums) {
    GroupScales scales = groups.scales;
    const uint16_t* const begin = scales.numbers;
    const uint16_t* const end = begin + groups.count * PANEL_OUTPUTS;
    const int64_t steps = groups.steps;
    TileInputs<ROWS> rows(inputs, row_bytes);
    for (; scales.numbers != end; scales.advance()) {
        Lanes partial[1][ROWS][PANEL_UNITS] = {};
        // A group is short: the processor foresees the end of a loop of a quarter of its steps better.
#pragma GCC unroll 4
        for (int64_t step = 0; step < steps; ++step, pairs += step_bytes(Form::BFLOAT16)) {
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
        add_group(partial, scales, scales.numbers == begin, sums);
    }
}

}  // namespace quantgate
