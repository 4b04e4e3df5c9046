#include "products/group_sums.h"

#include "products/group_tile.h"
#include "products/tiles.h"

namespace quantgate {
namespace {

using GroupTile = void (*)(const uint8_t*, const PanelGroups&, const uint8_t*, int64_t, Ahead, Lanes*);

template <class Codes, int... ROWS>
constexpr Tiles<GroupTile> group_tiles(std::integer_sequence<int, ROWS...>) {
    return {{add_panel_groups<Codes, false, ROWS + 1>...}, {add_panel_groups<Codes, true, ROWS + 1>...}};
}

template <int... ROWS>
constexpr TileOfRows<GroupTile> expanded_tiles(std::integer_sequence<int, ROWS...>) {
    return {add_expanded_groups<ROWS + 1>...};
}

template <class Codes>
constexpr Tiles<GroupTile> TILES = group_tiles<Codes>(RowCounts{});
constexpr TileOfRows<GroupTile> EXPANDED_TILES = expanded_tiles(RowCounts{});

GroupTile tile_of(const ReadPanel& panel, int64_t rows, const Ahead& ahead) {
    const bool zeros = panel.weight.zeros != nullptr;
    if (panel.form == Form::BFLOAT16) return EXPANDED_TILES[rows - 1];
    if (panel.form == Form::INT4) {
        return (zeros ? TILES<NibblesLessZeros> : TILES<Nibbles>).of(rows, ahead);
    }
    return (zeros ? TILES<ByteCodesLessZeros> : TILES<ByteCodes>).of(rows, ahead);
}

}  // namespace

void group_sums(const ReadPanel& panel, const uint8_t* numbers, int64_t row_bytes, int64_t rows, const Ahead& ahead,
                Lanes* sums) {
    const PanelWeight& weight = panel.weight;
    const GroupScales scales{static_cast<const uint16_t*>(weight.group_scales(panel.index)), weight.half_scales != 0};
    const PanelGroups groups{scales, weight.group_zeros(panel.index), weight.groups(),
                             steps_of(panel.form, weight.group_size)};
    tile_of(panel, rows, ahead)(panel.data, groups, numbers, row_bytes, ahead, sums);
}

}  // namespace quantgate
