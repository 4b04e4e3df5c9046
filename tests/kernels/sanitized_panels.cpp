// Calls the products of panels on buffers that end exactly where their data ends, on sizes that fill neither a vector
// register nor a tile nor a panel: alone, and on teams of threads, which must give the same bits.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "some_weights.h"
#include "thread_team.h"

extern "C" void quantgate_panel_linear(int32_t form, int32_t half_scales, const uint16_t* x, const uint8_t* panels,
                                       const void* scales, const void* zeros, const int32_t* code_sums,
                                       const float* bias, void* out, int out_is_float32, int64_t rows, int64_t inputs,
                                       int64_t outputs, int64_t group_size, int threads);

namespace sanitized {
namespace {

// One product with everything that may be added to it, on one thread and on teams.
void multiply(Form form, int64_t rows, int64_t inputs, int64_t outputs, int64_t group_size, Groups groups = {}) {
    const std::vector<uint16_t> x = some_numbers(rows * inputs);
    const Weight memory(form, inputs, outputs, group_size, groups);
    for (const bool wide : {false, true}) {
        for (const bool biased : {false, true}) {
            const quantgate::PanelWeight weight = memory.view(biased);
            std::vector<uint8_t> alone;
            for (const int threads : {1, 2, 3}) {
                std::vector<uint8_t> out(rows * outputs * (wide ? 4 : 2));
                quantgate_panel_linear(static_cast<int32_t>(form), weight.half_scales, x.data(), weight.data,
                                       weight.scales, weight.zeros, weight.code_sums, weight.bias, out.data(), wide,
                                       rows, inputs, outputs, weight.group_size, threads);
                if (threads == 1) alone = out;
                if (out != alone) {
                    std::printf("form %d, %d x %d x %d: %d threads give other bits\n", static_cast<int>(form),
                                static_cast<int>(rows), static_cast<int>(inputs), static_cast<int>(outputs), threads);
                    std::exit(1);
                }
            }
        }
    }
}

// Groups of every kind: several of them, and one of all inputs, which then need not be whole steps.
void multiply_groups(int64_t rows, int64_t outputs) {
    for (const Form form : {Form::INT4, Form::INT8_GROUPS}) {
        for (const bool zeros : {false, true}) {
            for (const bool half_scales : {false, true}) {
                const Groups groups{zeros, half_scales};
                multiply(form, rows, 24, outputs, 8, groups);
                for (const int64_t inputs : {7, 66}) multiply(form, rows, inputs, outputs, inputs, groups);
            }
        }
    }
}

}  // namespace
}  // namespace sanitized

int main() {
    using sanitized::Form;
    sanitized::use_threads();
    for (const int64_t rows : {1, 2, 3, 4, 11, 12, 13, 25, 64}) {
        for (const int64_t outputs : {1, 31, 32, 33, 70}) {
            for (const int64_t inputs : {1, 2, 3, 7, 8, 66}) {
                for (const Form form : {Form::BFLOAT16, Form::INT8, Form::QUADS}) {
                    sanitized::multiply(form, rows, inputs, outputs, 0);
                }
            }
            sanitized::multiply_groups(rows, outputs);
        }
    }
    std::puts("finished");
}
