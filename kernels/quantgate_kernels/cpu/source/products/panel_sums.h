// A panel's outputs for a few rows, whatever the form of the weight.
#pragma once

#include "common/lanes.h"
#include "products/ahead.h"
#include "products/panels.h"

namespace quantgate {

// A panel as its tiles read it. form: that of what data points to. next: the panel after it, as it is stored.
struct ReadPanel {
    const PanelWeight& weight;
    int64_t index;
    const uint8_t *data, *next;
    Form form;

    int64_t steps() const { return steps_of(form, weight.inputs); }

    // Of several tiles each fetches its part of the next panel.
    Ahead ahead(int64_t tile, int64_t tiles) const {
        if (tiles == 1) return {data, 0};
        const int64_t bytes = panel_bytes(weight.form, weight.inputs);
        return {next + bytes * tile / tiles, bytes / (steps() * tiles)};
    }
};

// A panel for so many rows: as it is stored, or where the rows are many, codes expanded to bfloat16. Those stand in a
// place that this thread's next panel takes.
ReadPanel read_panel(const PanelWeight& weight, int64_t panel, int64_t rows);

// sums: [rows][32 outputs], scaled and with the bias added; 1 <= rows <= MOST_TILE_ROWS.
void panel_sums(const ReadPanel& panel, const InputRows& inputs, int64_t first_row, int64_t rows, const Ahead& ahead,
                Lanes (*sums)[PANEL_UNITS]);

// Calls finish(row, sums) for the rows first..last, where sums are the 32 outputs of the panel. Rows go in tiles of
// about the same size: 8 and 8 read a panel as often as 12 and 4, and hide its latency better.
template <class Finish>
void multiply_panel(const PanelWeight& weight, int64_t panel, const InputRows& inputs, int64_t first, int64_t last,
                    const Finish& finish) {
    const int64_t count = last - first, tiles = (count + MOST_TILE_ROWS - 1) / MOST_TILE_ROWS;
    const ReadPanel read = read_panel(weight, panel, count);
    Lanes sums[MOST_TILE_ROWS][PANEL_UNITS];
    for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t begin = first + count * tile / tiles, end = first + count * (tile + 1) / tiles;
        panel_sums(read, inputs, begin, end - begin, read.ahead(tile, tiles), sums);
        for (int64_t row = begin; row < end; ++row) finish(row, sums[row - begin]);
    }
}

}  // namespace quantgate
