#include "products/panel_sums.h"

#include <array>
#include <utility>

#include "products/panel_tile.h"

namespace quantgate {
namespace {

static_assert(MOST_ROWS_AT_ONCE == MOST_TILE_ROWS);

using PairTile = void (*)(const uint8_t*, int64_t, const uint8_t*, int64_t, Lanes*);
using NibbleTile = void (*)(const uint8_t*, const BFloat16*, int64_t, int64_t, const uint8_t*, int64_t, Lanes*);
using QuadTile = void (*)(const uint8_t*, int64_t, const uint8_t*, int64_t, IntLanes*);

// Entry r is the tile of r + 1 rows.
using RowCounts = std::make_integer_sequence<int, MOST_TILE_ROWS>;

template <Form FORM, int... ROWS>
constexpr std::array<PairTile, MOST_TILE_ROWS> pair_tiles(std::integer_sequence<int, ROWS...>) {
    return {add_panel_pairs<FORM, ROWS + 1>...};
}

template <int... ROWS>
constexpr std::array<NibbleTile, MOST_TILE_ROWS> nibble_tiles(std::integer_sequence<int, ROWS...>) {
    return {add_panel_nibbles<ROWS + 1>...};
}

template <int... ROWS>
constexpr std::array<QuadTile, MOST_TILE_ROWS> quad_tiles(std::integer_sequence<int, ROWS...>) {
    return {add_panel_quads<ROWS + 1>...};
}

constexpr auto BFLOAT16_TILES = pair_tiles<Form::BFLOAT16>(RowCounts{});
constexpr auto INT8_TILES = pair_tiles<Form::INT8>(RowCounts{});
constexpr auto INT4_TILES = nibble_tiles(RowCounts{});
constexpr auto QUAD_TILES = quad_tiles(RowCounts{});

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
            const Lanes sum = __builtin_convertvector((IntLanes)((BitLanes)exact[row][unit] - added), Lanes);
            sums[row][unit] = sum * (output_scales * row_scales[row]);
        }
    }
}

}  // namespace

void panel_sums(const PanelWeight& weight, int64_t panel, const InputRows& inputs, int64_t first_row, int64_t rows,
                Lanes (*sums)[PANEL_UNITS]) {
    const uint8_t* data = weight.panel(panel);
    const uint8_t* numbers = inputs.numbers + first_row * inputs.row_bytes;
    const int64_t steps = steps_of(weight.form, weight.inputs), tile = rows - 1;
    switch (weight.form) {
        case Form::BFLOAT16:
            BFLOAT16_TILES[tile](data, steps, numbers, inputs.row_bytes, *sums);
            break;
        case Form::INT8:
            INT8_TILES[tile](data, steps, numbers, inputs.row_bytes, *sums);
            scale_outputs(weight.output_scales(panel), rows, sums);
            break;
        case Form::INT4:
            INT4_TILES[tile](data, weight.group_scales(panel), weight.inputs / weight.group_size,
                             weight.group_size / step_inputs(Form::INT4), numbers, inputs.row_bytes, *sums);
            break;
        case Form::QUADS: {
            IntLanes exact[MOST_ROWS_AT_ONCE][PANEL_UNITS];
            QUAD_TILES[tile](data, steps, numbers, inputs.row_bytes, *exact);
            scale_codes(exact, weight.output_scales(panel), weight.code_sums + panel * PANEL_OUTPUTS,
                        inputs.scales + first_row, rows, sums);
            break;
        }
    }
    if (weight.bias != nullptr) add_bias(weight.bias + panel * PANEL_OUTPUTS, rows, sums);
}

}  // namespace quantgate
