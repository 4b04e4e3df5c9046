// A panel of codes as pairs of bfloat16, expanded once for many rows and not again in every tile. Zeros are taken off. Scales
// are left out: they multiply sums, as they do where codes are expanded in registers, so that both ways give the same bits.
#pragma once

#include <cstdint>

#include "products/group_codes.h"
#include "products/panel_tile.h"

namespace quantgate {

constexpr bool expandable(Form form) { return form == Form::INT8 || has_groups(form); }

template <int PAIR, class Codes>
QUANTGATE_INLINED uint8_t* put_pair(const Codes& codes, uint8_t* pairs) {
    for (int unit = 0; unit < PANEL_UNITS; ++unit, pairs += sizeof(BitLanes)) {
        store_bits(codes.template pairs<PAIR>(unit), pairs);
    }
    return pairs;
}

template <class Codes>
void expand_groups(const PanelWeight& weight, int64_t panel, uint8_t* pairs) {
    const int64_t groups = weight.groups(), steps = steps_of(Codes::FORM, weight.group_size);
    const uint8_t* from = weight.panel(panel);
    const void* const zeros = weight.group_zeros(panel);
    Codes codes;
    for (int64_t group = 0; group < groups; ++group) {
        codes.begin_group(zeros, group);
        for (int64_t step = 0; step < steps; ++step, from += step_bytes(Codes::FORM)) {
            codes.load(from);
            pairs = put_pair<0>(codes, pairs);
            pairs = put_pair<1>(codes, pairs);
            pairs = put_pair<2>(codes, pairs);
            pairs = put_pair<3>(codes, pairs);
        }
    }
}

// pairs: as a panel of BFLOAT16 stores them, of as many inputs as the panel's steps take. The weight's form is expandable.
inline void expand_panel(const PanelWeight& weight, int64_t panel, uint8_t* pairs) {
    const bool zeros = weight.zeros != nullptr;
    if (weight.form == Form::INT4) {
        return zeros ? expand_groups<NibblesLessZeros>(weight, panel, pairs) : expand_groups<Nibbles>(weight, panel, pairs);
    }
    if (weight.form == Form::INT8_GROUPS) {
        return zeros ? expand_groups<ByteCodesLessZeros>(weight, panel, pairs)
                     : expand_groups<ByteCodes>(weight, panel, pairs);
    }
    const uint8_t* codes = weight.panel(panel);
    const int64_t units = steps_of(Form::INT8, weight.inputs) * PANEL_UNITS;
    for (int64_t unit = 0; unit < units; ++unit, codes += 2 * LANES, pairs += sizeof(BitLanes)) {
        store_bits(pairs_of_codes(reinterpret_cast<const int8_t*>(codes)), pairs);
    }
}

}  // namespace quantgate
