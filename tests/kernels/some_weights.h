// Numbers and weights in panels for programs under sanitizers: the same at each run, in buffers that end where the data
// ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "products/panels.h"

namespace sanitized {

using quantgate::Form;
using quantgate::PANEL_OUTPUTS;

inline uint32_t next_random() {
    static uint32_t state = 12345;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

// Bits of the bfloat16 0.5 and 0.125.
constexpr uint16_t HALF = 0x3f00, EIGHTH = 0x3e00;

// bfloat16 of both signs whose magnitudes are between `smallest`, a power of two, and four times that.
inline std::vector<uint16_t> some_numbers(int64_t count, uint16_t smallest = HALF) {
    std::vector<uint16_t> numbers(count);
    for (uint16_t& number : numbers) {
        number = static_cast<uint16_t>(smallest + next_random() % 256 + next_random() % 2 * 0x8000);
    }
    return numbers;
}

inline std::vector<float> some_floats(int64_t count, float magnitude = 1.0f) {
    std::vector<float> floats(count);
    for (float& number : floats) number = magnitude * (static_cast<float>(next_random() % 1000) / 500.0f - 1.0f);
    return floats;
}

// Each of so many inputs once, in no order.
inline std::vector<int32_t> some_order(int64_t count) {
    std::vector<int32_t> order(count);
    for (int64_t input = 0; input < count; ++input) {
        order[input] = static_cast<int32_t>(input);
        std::swap(order[input], order[next_random() % (input + 1)]);
    }
    return order;
}

// What groups have beside their scales, and whether these are float16.
struct Groups {
    bool zeros, half_scales;
};

// A weight and its memory. What fills a panel's last step has to be zero; what fills the last panel's outputs may be
// any number, and is one, for nothing may come of it.
struct Weight {
    Form form;
    int64_t inputs, outputs, group_size;
    Groups groups;
    std::vector<uint8_t> data, group_zeros;
    // As bfloat16 or as float16 they are numbers of about 1.
    std::vector<uint16_t> group_scales;
    std::vector<float> output_scales, bias;
    std::vector<int32_t> code_sums;

    Weight(Form form, int64_t inputs, int64_t outputs, int64_t group_size, Groups groups = {})
        : form(form), inputs(inputs), outputs(outputs), group_size(quantgate::has_groups(form) ? group_size : 0),
          groups(groups), data(panels() * quantgate::panel_bytes(form, inputs)), bias(some_floats(padded())) {
        for (uint8_t& byte : data) byte = static_cast<uint8_t>(next_random());
        if (form == Form::BFLOAT16) {
            const std::vector<uint16_t> numbers = some_numbers(static_cast<int64_t>(data.size()) / 2, EIGHTH);
            std::memcpy(data.data(), numbers.data(), data.size());
        }
        if (quantgate::has_groups(form)) {
            group_scales = some_numbers(padded() * (inputs / group_size), EIGHTH);
            group_zeros.resize(groups.zeros ? group_scales.size() : 0);
            for (uint8_t& zero : group_zeros) zero = static_cast<uint8_t>(next_random() % (form == Form::INT4 ? 16 : 256));
            return;
        }
        clear_last_step();
        if (form != Form::BFLOAT16) output_scales = some_floats(padded(), 1.0f / 256.0f);
        if (form == Form::QUADS) sum_codes();
    }

    quantgate::PanelWeight view(bool biased) const {
        const void* scales = form == Form::BFLOAT16          ? nullptr
                             : quantgate::has_groups(form) ? static_cast<const void*>(group_scales.data())
                                                           : static_cast<const void*>(output_scales.data());
        const void* zeros = group_zeros.empty() ? nullptr : group_zeros.data();
        const int32_t* sums = form == Form::QUADS ? code_sums.data() : nullptr;
        return {form,  groups.half_scales,              data.data(), scales,  zeros, sums,
                biased ? bias.data() : nullptr, inputs,      outputs, group_size};
    }

    // Its outputs then come twice.
    void repeat_first_panel_as_last() {
        repeat_first_as_last(data);
        repeat_first_as_last(group_scales);
        repeat_first_as_last(group_zeros);
        repeat_first_as_last(output_scales);
        repeat_first_as_last(code_sums);
    }

    int64_t padded() const { return panels() * PANEL_OUTPUTS; }

    // Where a number begins in `data`; for forms that do not share bytes.
    int64_t place(int64_t output, int64_t input) const {
        const int64_t step = quantgate::step_inputs(form), bytes = quantgate::step_bytes(form) / PANEL_OUTPUTS;
        const int64_t panel = output / PANEL_OUTPUTS * quantgate::panel_bytes(form, inputs);
        const int64_t begin = panel + input / step * quantgate::step_bytes(form);
        return begin + output % PANEL_OUTPUTS * bytes + input % step * bytes / step;
    }

    // Of a weight in BFLOAT16.
    float bfloat16_at(int64_t output, int64_t input) const {
        quantgate::BFloat16 number;
        std::memcpy(&number, data.data() + place(output, input), sizeof number);
        return quantgate::to_float(number);
    }

    void sum_codes() {
        code_sums.assign(padded(), 0);
        for (int64_t output = 0; output < padded(); ++output) {
            for (int64_t input = 0; input < inputs; ++input) {
                code_sums[output] += static_cast<int8_t>(data[place(output, input)]);
            }
        }
    }

private:
    template <class Number>
    void repeat_first_as_last(std::vector<Number>& numbers) const {
        const int64_t panel = static_cast<int64_t>(numbers.size()) / panels();
        std::copy(numbers.begin(), numbers.begin() + panel, numbers.end() - panel);
    }

    int64_t panels() const { return quantgate::panels_of(outputs); }

    void clear_last_step() {
        const int64_t bytes = form == Form::BFLOAT16 ? 2 : 1;
        const int64_t all = quantgate::steps_of(form, inputs) * quantgate::step_inputs(form);
        for (int64_t output = 0; output < padded(); ++output) {
            for (int64_t input = inputs; input < all; ++input) {
                std::memset(data.data() + place(output, input), 0, bytes);
            }
        }
    }
};

}  // namespace sanitized
