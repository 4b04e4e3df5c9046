// The tiles of a product, compiled for each number of rows.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "products/ahead.h"
#include "products/panel_tile.h"

namespace quantgate {

// Entry r is the tile of r + 1 rows.
using RowCounts = std::make_integer_sequence<int, MOST_TILE_ROWS>;

template <class Tile>
using TileOfRows = std::array<Tile, MOST_TILE_ROWS>;

template <class Tile>
struct Tiles {
    TileOfRows<Tile> of_several, only_one;

    Tile of(int64_t rows, const Ahead& ahead) const { return (ahead.once() ? only_one : of_several)[rows - 1]; }
};

}  // namespace quantgate
