// Sums of one panel for a few rows, all of which stay in registers: the inner loop of every product.
// Bound: each step reads its part of the panel once for all rows of the tile, and makes 32 outputs x step inputs x rows
// multiply-adds.
#pragma once

#include <cstdint>

#include "common/intrinsics.h"
#include "products/ahead.h"
#include "products/code_pairs.h"
#include "products/panels.h"
#include "products/unit_math.h"

namespace quantgate {

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
            BitLanes sum = bits_of(partial[0][row][unit]);
            for (int part = 1; part < PARTS; ++part) sum += bits_of(partial[part][row][unit]);
            sums[row * PANEL_UNITS + unit] = ints_of_bits(sum);
        }
    }
}

}  // namespace quantgate
