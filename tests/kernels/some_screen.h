// The screen of a head in bfloat16, for programs under sanitizers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "some_weights.h"
#include "step/head_screen.h"

namespace sanitized {

struct Screen {
    Weight codes;
    std::vector<float> lengths, losses;

    explicit Screen(const Weight& head)
        : codes(Form::QUADS, head.inputs, head.outputs, 0), lengths(codes.padded()), losses(codes.padded()) {
        for (int64_t output = 0; output < head.outputs; ++output) {
            float largest = 0.0f;
            for (int64_t input = 0; input < head.inputs; ++input) {
                largest = std::max(largest, std::fabs(head.bfloat16_at(output, input)));
            }
            const float scale = largest / 127.0f;
            double squares = 0.0, lost_squares = 0.0;
            for (int64_t input = 0; input < head.inputs; ++input) {
                const double number = head.bfloat16_at(output, input);
                const auto code = static_cast<int8_t>(std::lround(number / scale));
                codes.data[codes.place(output, input)] = static_cast<uint8_t>(code);
                const double lost = number - code * static_cast<double>(scale);
                squares += number * number;
                lost_squares += lost * lost;
            }
            codes.output_scales[output] = scale;
            lengths[output] = static_cast<float>(std::sqrt(squares) * 1.0001);
            losses[output] = static_cast<float>(std::sqrt(lost_squares) * 1.0001);
        }
        codes.sum_codes();
    }

    quantgate::HeadScreen view() const {
        return {codes.view(false), lengths.data(), losses.data(), *std::max_element(lengths.begin(), lengths.end())};
    }
};

}  // namespace sanitized
