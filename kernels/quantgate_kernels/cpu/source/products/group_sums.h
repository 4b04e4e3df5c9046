// A tile's sums of a panel whose groups have scales.
#pragma once

#include "products/panel_sums.h"

namespace quantgate {

// As `panel_sums`, for weights with groups and without the bias.
void group_sums(const ReadPanel& panel, const uint8_t* numbers, int64_t row_bytes, int64_t rows, const Ahead& ahead,
                Lanes* sums);

}  // namespace quantgate
