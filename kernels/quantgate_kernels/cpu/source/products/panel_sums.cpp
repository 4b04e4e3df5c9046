#include "products/panel_sums.h"

#include "attention/aligned_array.h"
#include "products/group_sums.h"
#include "products/panel_expansion.h"
#include "products/panel_tile.h"
#include "products/tiles.h"

namespace quantgate {
namespace {

using PairTile = void (*)(const uint8_t*, int64_t, const uint8_t*, int64_t, Ahead, Lanes*);
using QuadTile = void (*)(const uint8_t*, int64_t, const uint8_t*, int64_t, Ahead, IntLanes*);

template <Form FORM, int... ROWS>
constexpr Tiles<PairTile> pair_tiles(std::integer_sequence<int, ROWS...>) {
    return {{add_panel_pairs<FORM, false, ROWS + 1>...}, {add_panel_pairs<FORM, true, ROWS + 1>...}};
}

template <int... ROWS>
constexpr Tiles<QuadTile> quad_tiles(std::integer_sequence<int, ROWS...>) {
    return {{add_panel_quads<false, ROWS + 1>...}, {add_panel_quads<true, ROWS + 1>...}};
}

constexpr auto BFLOAT16_TILES = pair_tiles<Form::BFLOAT16>(RowCounts{});
constexpr auto INT8_TILES = pair_tiles<Form::INT8>(RowCounts{});
constexpr auto QUAD_TILES = quad_tiles(RowCounts{});

// From so many rows on it pays to expand a panel once: four or more tiles then read it.
constexpr int64_t ROWS_WORTH_EXPANDING = 3 * MOST_TILE_ROWS + 1;
// A larger panel would not stay in a near cache.
constexpr int64_t MOST_EXPANDED_BYTES = 256 * 1024;

// A thread keeps its own, of the largest panel that it has expanded.
uint8_t* expansion_of_thread(int64_t bytes) {
    thread_local AlignedArray<uint8_t> place(0);
    thread_local int64_t size = 0;
    if (size < bytes) {
        place = AlignedArray<uint8_t>(bytes);
        size = bytes;
    }
    return place.data();
}

void scale_outputs(const float* scales, int64_t rows, Lanes (*sums)[PANEL_UNITS]) {
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t unit = 0; unit < PANEL_UNITS; ++unit) sums[row][unit] *= load(scales + unit * LANES);
    }
}

void add_bias(const float* bias, int64_t rows, Lanes (*sums)[PANEL_UNITS]) {
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t unit = 0; unit < PANEL_UNITS; ++unit) sums[row][unit] += load(bias + unit * LANES);
    }
}

// Codes were multiplied as code + 128; what that added is known exactly, and taken off before the sums are scaled.
void scale_codes(const IntLanes (*exact)[PANEL_UNITS], const float* scales, const int32_t* code_sums,
                 const float* row_scales, int64_t rows, Lanes (*sums)[PANEL_UNITS]) {
    for (int64_t unit = 0; unit < PANEL_UNITS; ++unit) {
        const BitLanes added = load_bits(code_sums + unit * LANES) * 128;
        const Lanes output_scales = load(scales + unit * LANES);
        for (int64_t row = 0; row < rows; ++row) {
            const Lanes sum = to_float(ints_of_bits(bits_of(exact[row][unit]) - added));
            sums[row][unit] = sum * (output_scales * row_scales[row]);
        }
    }
}

}  // namespace

ReadPanel read_panel(const PanelWeight& weight, int64_t panel, int64_t rows) {
    const Form form = weight.form;
    const uint8_t* stored = weight.panel(panel);
    const uint8_t* next = panel + 1 < weight.panels() ? weight.panel(panel + 1) : stored;
    const int64_t steps = steps_of(form, weight.inputs), bytes = panel_bytes(Form::BFLOAT16, steps * step_inputs(form));
    if (!expandable(form) || rows < ROWS_WORTH_EXPANDING || bytes > MOST_EXPANDED_BYTES) {
        return {weight, panel, stored, next, form};
    }
    uint8_t* pairs = expansion_of_thread(bytes);
    expand_panel(weight, panel, pairs);
    return {weight, panel, pairs, next, Form::BFLOAT16};
}

void panel_sums(const ReadPanel& panel, const InputRows& inputs, int64_t first_row, int64_t rows, const Ahead& ahead,
                Lanes (*sums)[PANEL_UNITS]) {
    const PanelWeight& weight = panel.weight;
    const uint8_t* numbers = inputs.numbers + first_row * inputs.row_bytes;
    const int64_t row_bytes = inputs.row_bytes, steps = panel.steps();
    const bool expanded = panel.form != weight.form;
    switch (weight.form) {
        case Form::BFLOAT16:
            BFLOAT16_TILES.of(rows, ahead)(panel.data, steps, numbers, row_bytes, ahead, *sums);
            break;
        case Form::INT8:
            (expanded ? BFLOAT16_TILES : INT8_TILES).of(rows, ahead)(panel.data, steps, numbers, row_bytes, ahead, *sums);
            scale_outputs(weight.output_scales(panel.index), rows, sums);
            break;
        case Form::INT4:
        case Form::INT8_GROUPS:
            group_sums(panel, numbers, row_bytes, rows, ahead, *sums);
            break;
        case Form::QUADS: {
            IntLanes exact[MOST_TILE_ROWS][PANEL_UNITS];
            QUAD_TILES.of(rows, ahead)(panel.data, steps, numbers, row_bytes, ahead, *exact);
            scale_codes(exact, weight.output_scales(panel.index), weight.code_sums + panel.index * PANEL_OUTPUTS,
                        inputs.scales + first_row, rows, sums);
            break;
        }
    }
    if (weight.bias != nullptr) add_bias(weight.bias + panel.index * PANEL_OUTPUTS, rows, sums);
}

}  // namespace quantgate
