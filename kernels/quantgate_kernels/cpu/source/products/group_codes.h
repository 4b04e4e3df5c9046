// The codes of weights with groups, as the products take them: eight inputs a step, in four pairs for each output. Each kind
// says how it is read from its panel; zeros are taken off codes in registers, where the difference is exact.
#pragma once

#include <cstdint>

#include "common/intrinsics.h"
#include "products/code_pairs.h"
#include "products/nibble_pairs.h"
#include "products/panels.h"

namespace quantgate {

template <class Unit>
struct NibbleCodes {
    static constexpr Form FORM = Form::INT4;
    Unit units[PANEL_UNITS];

    QUANTGATE_INLINED void load(const uint8_t* step) {
        for (int unit = 0; unit < PANEL_UNITS; ++unit) units[unit].load(step + 64 * unit);
    }

    template <int PAIR>
    QUANTGATE_INLINED BitLanes pairs(int unit) const {
        return units[unit].template pairs<PAIR>();
    }
};

struct Nibbles : NibbleCodes<NibblePairs> {
    QUANTGATE_INLINED void begin_group(const void*, int64_t) {}
};

struct NibblesLessZeros : NibbleCodes<NibblePairsLessZeros> {
    // of_panel: uint8 [groups][32].
    QUANTGATE_INLINED void begin_group(const void* of_panel, int64_t group) {
        const auto* of_group = static_cast<const uint8_t*>(of_panel) + group * PANEL_OUTPUTS;
        for (int unit = 0; unit < PANEL_UNITS; ++unit) units[unit].load_zeros(of_group + unit * LANES);
    }
};

struct ByteCodes {
    static constexpr Form FORM = Form::INT8_GROUPS;
    const int8_t* codes;

    QUANTGATE_INLINED void begin_group(const void*, int64_t) {}

    QUANTGATE_INLINED void load(const uint8_t* step) { codes = reinterpret_cast<const int8_t*>(step); }

    template <int PAIR>
    QUANTGATE_INLINED BitLanes pairs(int unit) const {
        return pairs_of_codes(codes + 2 * (PAIR * PANEL_OUTPUTS + unit * LANES));
    }
};

struct ByteCodesLessZeros {
    static constexpr Form FORM = Form::INT8_GROUPS;
    const int8_t* codes;
    PairZeros zeros[PANEL_UNITS];

    // of_panel: int8 [groups][32].
    QUANTGATE_INLINED void begin_group(const void* of_panel, int64_t group) {
        const auto* of_group = static_cast<const int8_t*>(of_panel) + group * PANEL_OUTPUTS;
        for (int unit = 0; unit < PANEL_UNITS; ++unit) zeros[unit] = load_pair_zeros(of_group + unit * LANES);
    }

    QUANTGATE_INLINED void load(const uint8_t* step) { codes = reinterpret_cast<const int8_t*>(step); }

    template <int PAIR>
    QUANTGATE_INLINED BitLanes pairs(int unit) const {
        return pairs_of_codes(codes + 2 * (PAIR * PANEL_OUTPUTS + unit * LANES), zeros[unit]);
    }
};

}  // namespace quantgate
