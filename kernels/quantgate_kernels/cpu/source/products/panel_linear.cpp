// A product of rows with a weight in panels, alone: x [rows, inputs] -> out [rows, outputs].
// Bound: reads the panels once for every tile of rows from a cache that holds one panel, and from memory once.
#include <algorithm>
#include <cstring>
#include <vector>

#include "common/number.h"
#include "common/parallel.h"
#include "products/byte_row.h"
#include "products/panel_sums.h"

namespace quantgate {
namespace {

// Inputs in rows of their own, padded with zeros to a whole step of any form.
struct OwnRows {
    std::vector<uint8_t> numbers;
    std::vector<float> scales;
    int64_t row_bytes;

    OwnRows(Form form, const BFloat16* x, int64_t rows, int64_t inputs, int threads) {
        const bool codes = form == Form::QUADS;
        row_bytes = (inputs + 7) / 8 * 8 * (codes ? 1 : 2);
        numbers.resize(rows * row_bytes);
        scales.resize(codes ? rows : 0);
        parallel_for(rows, rows_worth_a_thread(inputs), threads, [&](int64_t begin, int64_t end) {
            for (int64_t row = begin; row < end; ++row) {
                uint8_t* to = &numbers[row * row_bytes];
                if (codes) {
                    scales[row] = quantize_to_bytes(x + row * inputs, inputs, to);
                } else {
                    std::memcpy(to, x + row * inputs, inputs * sizeof(BFloat16));
                }
            }
        });
    }

    InputRows view(int64_t count) const { return {numbers.data(), scales.data(), row_bytes, count}; }
};

template <class Number>
void linear(const PanelWeight& weight, const BFloat16* x, Number* out, int64_t rows, int threads) {
    const OwnRows own(weight.form, x, rows, weight.inputs, threads);
    const InputRows inputs = own.view(rows);
    parallel_for(weight.panels(), 1, threads, [&](int64_t begin, int64_t end) {
        for (int64_t panel = begin; panel < end; ++panel) {
            const int64_t first = panel * PANEL_OUTPUTS, outputs = std::min(PANEL_OUTPUTS, weight.outputs - first);
            multiply_panel(weight, panel, inputs, 0, rows, [&](int64_t row, const Lanes* sums) {
                float wide[PANEL_OUTPUTS];
                std::memcpy(wide, sums, sizeof wide);
                Number* to = out + row * weight.outputs + first;
                for (int64_t o = 0; o < outputs; ++o) to[o] = rounded<Number>(wide[o]);
            });
        }
    });
}

}  // namespace
}  // namespace quantgate

// out: float32 where out_is_float32, else bfloat16. The others: see PanelWeight.
extern "C" void quantgate_panel_linear(int32_t form, int32_t half_scales, const quantgate::BFloat16* x,
                                       const uint8_t* panels, const void* scales, const void* zeros,
                                       const int32_t* code_sums, const float* bias, void* out, int out_is_float32,
                                       int64_t rows, int64_t inputs, int64_t outputs, int64_t group_size,
                                       int threads) {
    const quantgate::PanelWeight weight{static_cast<quantgate::Form>(form), half_scales, panels,  scales,    zeros,
                                        code_sums,                          bias,        inputs,  outputs,   group_size};
    if (out_is_float32) return quantgate::linear(weight, x, static_cast<float*>(out), rows, threads);
    quantgate::linear(weight, x, static_cast<quantgate::BFloat16*>(out), rows, threads);
}
