// The order in which weights are stored for panel products: panels of 32 outputs, each a run of memory that a product
// reads once from its front to its back, as two registers of 16 outputs at each step along the inputs.
#pragma once

#include <cstdint>

#include "common/intrinsics.h"
#include "common/number.h"

namespace quantgate {

constexpr int64_t PANEL_OUTPUTS = 32;
constexpr int64_t PANEL_UNITS = PANEL_OUTPUTS / 16;

// Rows that go over a panel at once. With AVX-512, sums of 12 rows take 24 registers; weights and inputs take what is left of
// 32. Other processors keep most of the sums in their nearest cache, and measure fastest with 6.
constexpr int MOST_TILE_ROWS = QUANTGATE_AVX512 ? 12 : 6;

// How the numbers of a panel are coded. The values are part of the interface with Python.
enum class Form : int32_t {
    BFLOAT16 = 0,  // [inputs / 2][32 outputs][2 inputs] bfloat16
    INT8 = 1,      // [inputs / 2][32 outputs][2 inputs] int8; times one scale for each output
    INT4 = 2,      // [inputs / 8][2 x 16 outputs][2 inputs] words of four nibbles; times one scale for each group
    QUADS = 3,     // [inputs / 4][32 outputs][4 inputs] int8; inputs are multiplied as codes too
    INT8_GROUPS = 4,  // as INT8, padded to whole steps of 8 inputs; times one scale for each group
};

constexpr bool has_groups(Form form) { return form == Form::INT4 || form == Form::INT8_GROUPS; }

// Inputs that one step along a panel takes; panels are padded with zeros to whole steps.
constexpr int64_t step_inputs(Form form) {
    return has_groups(form) ? 8 : form == Form::QUADS ? 4 : 2;
}

// Bytes of one step of a panel.
constexpr int64_t step_bytes(Form form) {
    return PANEL_OUTPUTS * (form == Form::INT8_GROUPS ? 8 : form == Form::INT8 ? 2 : 4);
}

constexpr int64_t steps_of(Form form, int64_t inputs) { return (inputs + step_inputs(form) - 1) / step_inputs(form); }

constexpr int64_t panel_bytes(Form form, int64_t inputs) { return steps_of(form, inputs) * step_bytes(form); }

constexpr int64_t panels_of(int64_t outputs) { return (outputs + PANEL_OUTPUTS - 1) / PANEL_OUTPUTS; }

// A weight in panels.
// data: [panels][panel_bytes]. scales: none for BFLOAT16; [panels][groups][32] for forms with groups, bfloat16 or, where
// half_scales is not 0, float16; float32 [panels][32] for INT8 and QUADS. zeros: what is taken off each code of a group,
// [panels][groups][32], uint8 in 0..16 for INT4 and int8 for INT8_GROUPS; or none: 8 and 0. code_sums: for QUADS, each
// output's sum of codes, int32 [panels][32]. bias: float32 [panels][32], or none.
// group_size: a multiple of 8, or all inputs.
struct PanelWeight {
    Form form;
    int32_t half_scales;
    const uint8_t* data;
    const void *scales, *zeros;
    const int32_t* code_sums;
    const float* bias;
    int64_t inputs, outputs, group_size;

    int64_t panels() const { return panels_of(outputs); }
    int64_t groups() const { return inputs / group_size; }
    const uint8_t* panel(int64_t index) const { return data + index * panel_bytes(form, inputs); }
    const float* output_scales(int64_t index) const {
        return static_cast<const float*>(scales) + index * PANEL_OUTPUTS;
    }
    // Both have 16 bits.
    const void* group_scales(int64_t index) const {
        return static_cast<const BFloat16*>(scales) + index * groups() * PANEL_OUTPUTS;
    }
    const void* group_zeros(int64_t index) const {
        return zeros == nullptr ? nullptr : static_cast<const uint8_t*>(zeros) + index * groups() * PANEL_OUTPUTS;
    }
};

// Rows of inputs. numbers: bfloat16 [rows][row_bytes], readable and zero to a whole step of any form. For QUADS they are
// codes + 128, uint8 in rows of the same kind, each code times the row's scale.
struct InputRows {
    const uint8_t* numbers;
    const float* scales;
    int64_t row_bytes, count;
};

}  // namespace quantgate
