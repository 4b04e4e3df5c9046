// Sums of one panel for a few rows, all of which stay in registers: the inner loop of every product.
// Bound: each step reads its part of the panel once for all rows of the tile, and makes 32 outputs x step inputs x rows
// multiply-adds.
#pragma once

#include <cstdint>

#include "common/bfloat16_lanes.h"
#include "common/intrinsics.h"
#include "products/ahead.h"
#include "products/panels.h"
#include "products/unit_math.h"

namespace quantgate {

// With 12 rows, 24 registers hold sums; weights and inputs take what is left of 32.
constexpr int MOST_TILE_ROWS = 12;

// Inputs of the tile's rows. Every third row has a pointer, and the two after it stand at the same distance from it: a
// pointer for each row would be more than the processor has registers for.
template <int ROWS>
struct TileInputs {
    static constexpr int POINTERS = (ROWS + 2) / 3;
    const uint8_t* every_third[POINTERS];
    int64_t row_bytes;

    QUANTGATE_INLINED TileInputs(const uint8_t* first, int64_t row_bytes) : row_bytes(row_bytes) {
        for (int pointer = 0; pointer < POINTERS; ++pointer) every_third[pointer] = first + 3 * pointer * row_bytes;
    }

    QUANTGATE_INLINED uint32_t word(int row, int64_t offset) const {
        uint32_t inputs;
        std::memcpy(&inputs, every_third[row / 3] + row % 3 * row_bytes + offset, sizeof inputs);
        return inputs;
    }

    QUANTGATE_INLINED void advance(int64_t bytes) {
        for (int pointer = 0; pointer < POINTERS; ++pointer) every_third[pointer] += bytes;
    }
};

// Few rows have few sums, each of which would wait for its own last addition: they are split into partial sums.
constexpr int partial_sums(int rows) { return rows == 1 ? 4 : rows <= 3 ? 2 : 1; }

// One step's weights for 16 outputs, as add_pairs takes them.
template <Form FORM>
QUANTGATE_INLINED BitLanes step_pairs(const uint8_t* step, int unit) {
    if constexpr (FORM == Form::BFLOAT16) return load_bits(step + 64 * unit);
    return pairs_of_codes(reinterpret_cast<const int8_t*>(step) + 32 * unit);
}

// BFLOAT16 and INT8, whose scales multiply the finished sums.
template <Form FORM, bool ONCE, int ROWS>
void add_panel_pairs(const uint8_t* panel, int64_t steps, const uint8_t* inputs, int64_t row_bytes, Ahead ahead,
                     Lanes* sums) {
    constexpr int PARTS = partial_sums(ROWS);
    Lanes partial[PARTS][ROWS][PANEL_UNITS] = {};
    TileInputs<ROWS> rows(inputs, row_bytes);
    int64_t step = 0;
    for (; step + PARTS <= steps; step += PARTS) {
        for (int part = 0; part < PARTS; ++part) {
            const uint8_t* at = panel + (step + part) * step_bytes(FORM);
            ahead.fetch<FORM, ONCE>(at);
            BitLanes weights[PANEL_UNITS];
            for (int unit = 0; unit < PANEL_UNITS; ++unit) weights[unit] = step_pairs<FORM>(at, unit);
            for (int row = 0; row < ROWS; ++row) {
                const uint32_t pair = rows.word(row, 4 * part);
                for (int unit = 0; unit < PANEL_UNITS; ++unit) {
                    partial[part][row][unit] = add_pairs(partial[part][row][unit], weights[unit], pair);
                }
            }
        }
        rows.advance(4 * PARTS);
    }
    for (; step < steps; ++step) {
        for (int unit = 0; unit < PANEL_UNITS; ++unit) {
            const BitLanes weights = step_pairs<FORM>(panel + step * step_bytes(FORM), unit);
            for (int row = 0; row < ROWS; ++row) {
                partial[0][row][unit] = add_pairs(partial[0][row][unit], weights, rows.word(row, 0));
            }
        }
        rows.advance(4);
    }
    for (int row = 0; row < ROWS; ++row) {
        for (int unit = 0; unit < PANEL_UNITS; ++unit) {
            Lanes sum = partial[0][row][unit];
            for (int part = 1; part < PARTS; ++part) sum += partial[part][row][unit];
            sums[row * PANEL_UNITS + unit] = sum;
        }
    }
}

// One nibble of each word of a step: two inputs for each output.
template <int NIBBLE, int PARTS, int ROWS>
QUANTGATE_INLINED void add_nibbles(const BitLanes (&words)[PANEL_UNITS], const BitLanes& table,
                                   const TileInputs<ROWS>& rows, Lanes (&partial)[PARTS][ROWS][PANEL_UNITS]) {
    BitLanes weights[PANEL_UNITS];
    for (int unit = 0; unit < PANEL_UNITS; ++unit) weights[unit] = pairs_of_nibbles<NIBBLE>(words[unit], table);
    for (int row = 0; row < ROWS; ++row) {
        const uint32_t pair = rows.word(row, 4 * NIBBLE);
        for (int unit = 0; unit < PANEL_UNITS; ++unit) {
            Lanes& sum = partial[NIBBLE % PARTS][row][unit];
            sum = add_pairs(sum, weights[unit], pair);
        }
    }
}

// Adds a group's partial sums times its scales to the sums; those of the first group are the sums so far.
template <int PARTS, int ROWS>
QUANTGATE_INLINED void add_group(const Lanes (&partial)[PARTS][ROWS][PANEL_UNITS], const BFloat16* scales, bool first,
                                 Lanes* sums) {
    for (int unit = 0; unit < PANEL_UNITS; ++unit) {
        const Lanes unit_scales = load(scales + unit * LANES);
        for (int row = 0; row < ROWS; ++row) {
            Lanes sum = partial[0][row][unit];
            for (int part = 1; part < PARTS; ++part) sum += partial[part][row][unit];
            Lanes& total = sums[row * PANEL_UNITS + unit];
            total = first ? sum * unit_scales : total + sum * unit_scales;
        }
    }
}

// INT4: a group's sum is multiplied by the group's scale, so that a weight is nowhere rounded.
template <bool ONCE, int ROWS>
void add_panel_nibbles(const uint8_t* panel, const BFloat16* group_scales, int64_t groups, int64_t group_steps,
                       const uint8_t* inputs, int64_t row_bytes, Ahead ahead, Lanes* sums) {
    constexpr int PARTS = partial_sums(ROWS);
    const BitLanes table = load_bits(NIBBLES.steps);
    TileInputs<ROWS> rows(inputs, row_bytes);
    for (int64_t group = 0; group < groups; ++group) {
        Lanes partial[PARTS][ROWS][PANEL_UNITS] = {};
        for (int64_t step = 0; step < group_steps; ++step, panel += step_bytes(Form::INT4)) {
            ahead.fetch<Form::INT4, ONCE>(panel);
            const BitLanes words[PANEL_UNITS] = {load_bits(panel), load_bits(panel + 64)};
            add_nibbles<0>(words, table, rows, partial);
            add_nibbles<1>(words, table, rows, partial);
            add_nibbles<2>(words, table, rows, partial);
            add_nibbles<3>(words, table, rows, partial);
            rows.advance(16);
        }
        add_group(partial, group_scales + group * PANEL_OUTPUTS, group == 0, sums);
    }
}

// QUADS: exact sums in int32, which those of 133,144 inputs fit into. Inputs are codes + 128, which adds 128 times the output's sum of codes to each.
template <bool ONCE, int ROWS>
void add_panel_quads(const uint8_t* panel, int64_t steps, const uint8_t* inputs, int64_t row_bytes, Ahead ahead,
                     IntLanes* sums) {
    constexpr int PARTS = partial_sums(ROWS);
    IntLanes partial[PARTS][ROWS][PANEL_UNITS] = {};
    TileInputs<ROWS> rows(inputs, row_bytes);
    int64_t step = 0;
    for (; step + PARTS <= steps; step += PARTS) {
        for (int part = 0; part < PARTS; ++part) {
            const uint8_t* at = panel + (step + part) * step_bytes(Form::QUADS);
            ahead.fetch<Form::QUADS, ONCE>(at);
            const BitLanes weights[PANEL_UNITS] = {load_bits(at), load_bits(at + 64)};
            for (int row = 0; row < ROWS; ++row) {
                const uint32_t quad = rows.word(row, 4 * part);
                for (int unit = 0; unit < PANEL_UNITS; ++unit) {
                    partial[part][row][unit] = add_quads(partial[part][row][unit], weights[unit], quad);
                }
            }
        }
        rows.advance(4 * PARTS);
    }
    for (; step < steps; ++step) {
        for (int unit = 0; unit < PANEL_UNITS; ++unit) {
            const BitLanes weights = load_bits(panel + step * step_bytes(Form::QUADS) + 64 * unit);
            for (int row = 0; row < ROWS; ++row) {
                partial[0][row][unit] = add_quads(partial[0][row][unit], weights, rows.word(row, 0));
            }
        }
        rows.advance(4);
    }
    for (int row = 0; row < ROWS; ++row) {
        for (int unit = 0; unit < PANEL_UNITS; ++unit) {
            auto sum = (BitLanes)partial[0][row][unit];
            for (int part = 1; part < PARTS; ++part) sum += (BitLanes)partial[part][row][unit];
            sums[row * PANEL_UNITS + unit] = (IntLanes)sum;
        }
    }
}

}  // namespace quantgate
