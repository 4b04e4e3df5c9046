// A product of a step's rows, shared out among the members of a team.
#pragma once

#include <algorithm>

#include "common/team.h"
#include "products/panel_sums.h"

namespace quantgate {

// With few rows a product is a pass over its weight: each member reads a stretch of memory of its own, front to back,
// and each panel fetches the next one. With more it is arithmetic, and parts are taken as members come free.
constexpr int64_t ROWS_WORTH_SHARING = 97;
// Rows that go over a panel together. The more they are, the less often is the panel read and are its codes expanded;
// but they have to stay in a near cache, and every member should find some items to take.
constexpr int64_t LEAST_ROWS_OF_A_PART = 96, MOST_ROWS_OF_A_PART = 256, ITEMS_FOR_EACH_MEMBER = 8;

inline int64_t parts_of(int64_t rows, int64_t panels, int64_t members) {
    const auto pieces = [](int64_t whole, int64_t piece) { return (whole + piece - 1) / piece; };
    return std::clamp(pieces(members * ITEMS_FOR_EACH_MEMBER, panels), pieces(rows, MOST_ROWS_OF_A_PART),
                      pieces(rows, LEAST_ROWS_OF_A_PART));
}

// Calls finish(panel, row, sums) once for each panel and row; a meeting must follow.
template <class Finish>
void multiply(const Member& member, const PanelWeight& weight, const InputRows& inputs, const Finish& finish) {
    const auto rows_of_panel = [&](int64_t panel, int64_t first, int64_t last) {
        multiply_panel(weight, panel, inputs, first, last,
                       [&](int64_t row, const Lanes* sums) { finish(panel, row, sums); });
    };
    if (inputs.count < ROWS_WORTH_SHARING) {
        member.split(weight.panels(), [&](int64_t first, int64_t last) {
            for (int64_t panel = first; panel < last; ++panel) rows_of_panel(panel, 0, inputs.count);
        });
        return;
    }
    const int64_t parts = parts_of(inputs.count, weight.panels(), member.count);
    member.share(weight.panels() * parts, [&](int64_t item) {
        const int64_t part = item % parts;
        rows_of_panel(item / parts, inputs.count * part / parts, inputs.count * (part + 1) / parts);
    });
}

}  // namespace quantgate
