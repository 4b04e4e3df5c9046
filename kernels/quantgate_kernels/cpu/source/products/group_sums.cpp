#include "products/group_sums.h"

#include "products/group_tile.h"
#include "products/tiles.h"

namespace quantgate {
namespace {

using GroupTile = void (*)(const uint8_t*, const PanelGroups&, const uint8_t*, int64_t, Ahead, Lanes*);

template <class Codes, class Scale, int... ROWS>
constexpr Tiles<GroupTile> group_tiles(std::integer_sequence<int, ROWS...>) {
    return {{add_panel_groups<Codes, Scale, false, ROWS + 1>...}, {add_panel_groups<Codes, Scale, true, ROWS + 1>...}};
}

template <class Scale, int... ROWS>
constexpr TileOfRows<GroupTile> expanded_tiles(std::integer_sequence<int, ROWS...>) {
    return {add_expanded_groups<Scale, ROWS + 1>...};
}

template <class Codes, class Scale>
constexpr Tiles<GroupTile> TILES = group_tiles<Codes, Scale>(RowCounts{});

template <class Scale>
constexpr TileOfRows<GroupTile> EXPANDED_TILES = expanded_tiles<Scale>(RowCounts{});

template <class Scale>
GroupTile tile_of(const ReadPanel& panel, int64_t rows, const Ahead& ahead) {
    const bool zeros = panel.weight.zeros != nullptr;
    if (panel.form == Form::BFLOAT16) return EXPANDED_TILES<Scale>[rows - 1];
    if (panel.form == Form::INT4) {
        return (zeros ? TILES<NibblesLessZeros, Scale> : TILES<Nibbles, Scale>).of(rows, ahead);
    }
    return (zeros ? TILES<ByteCodesLessZeros, Scale> : TILES<ByteCodes, Scale>).of(rows, ahead);
}

}  // namespace

void group_sums(const ReadPanel& panel, const uint8_t* numbers, int64_t row_bytes, int64_t rows, const Ahead& ahead,
                Lanes* sums) {
    const PanelWeight& weight = panel.weight;
    const PanelGroups groups{weight.group_scales(panel.index), weight.group_zeros(panel.index), weight.groups(),
                             steps_of(panel.form, weight.group_size)};
    const GroupTile tile = weight.half_scales != 0 ? tile_of<Float16>(panel, rows, ahead)
                                                   : tile_of<BFloat16>(panel, rows, ahead);
    tile(panel.data, groups, numbers, row_bytes, ahead, sums);
}

}  // namespace quantgate
