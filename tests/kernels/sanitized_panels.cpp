// Calls the products of panels on buffers that end exactly where their data ends, on sizes that fill neither a vector
// register nor a tile nor a panel: alone, and on teams of threads, which must give the same bits.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "products/panels.h"

extern "C" {
void quantgate_use_team(void* run, void* size);
void quantgate_panel_linear(int32_t form, const uint16_t* x, const uint8_t* panels, const void* scales,
                            const int32_t* code_sums, const float* bias, void* out, int out_is_float32, int64_t rows,
                            int64_t inputs, int64_t outputs, int64_t group_size, int threads);
}

namespace {

using quantgate::Form;
using quantgate::PANEL_OUTPUTS;

thread_local int members = 1;

// A team as OpenMP's runtimes start one: the caller is a member, and all are done when it returns.
void run_team(void (*work)(void*), void* argument, unsigned threads, unsigned) {
    const auto join = [=] {
        members = static_cast<int>(threads);
        work(argument);
        members = 1;
    };
    std::vector<std::thread> others;
    for (unsigned other = 1; other < threads; ++other) others.emplace_back(join);
    join();
    for (std::thread& other : others) other.join();
}

int team_size() { return members; }

uint32_t next_random() {
    static uint32_t state = 12345;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

// bfloat16 of magnitudes between 0.5 and 2, of both signs.
std::vector<uint16_t> some_numbers(int64_t count) {
    std::vector<uint16_t> numbers(count);
    for (uint16_t& number : numbers) {
        number = static_cast<uint16_t>(0x3f00 + next_random() % 256 + next_random() % 2 * 0x8000);
    }
    return numbers;
}

std::vector<float> some_floats(int64_t count) {
    std::vector<float> floats(count);
    for (float& number : floats) number = static_cast<float>(next_random() % 1000) / 500.0f - 1.0f;
    return floats;
}

// Every byte that may stand in a panel of the form: codes, nibbles, or finite 16-bit numbers.
std::vector<uint8_t> some_panels(Form form, int64_t bytes) {
    std::vector<uint8_t> panels(bytes);
    for (uint8_t& byte : panels) byte = static_cast<uint8_t>(next_random());
    if (form == Form::BFLOAT16) {
        const std::vector<uint16_t> numbers = some_numbers(bytes / 2);
        std::memcpy(panels.data(), numbers.data(), bytes);
    }
    return panels;
}

// One product with everything that may be added to it, on one thread and on teams.
void multiply(Form form, int64_t rows, int64_t inputs, int64_t outputs, int64_t group_size) {
    const int64_t panels = quantgate::panels_of(outputs), padded = panels * PANEL_OUTPUTS;
    const std::vector<uint16_t> x = some_numbers(rows * inputs);
    const std::vector<uint8_t> data = some_panels(form, panels * quantgate::panel_bytes(form, inputs));
    const std::vector<uint16_t> group_scales = some_numbers(form == Form::INT4 ? padded * (inputs / group_size) : 0);
    const std::vector<float> output_scales = some_floats(form == Form::INT8 || form == Form::QUADS ? padded : 0);
    const void* scales = form == Form::BFLOAT16 ? nullptr
                         : form == Form::INT4   ? static_cast<const void*>(group_scales.data())
                                                : static_cast<const void*>(output_scales.data());
    const std::vector<int32_t> code_sums(form == Form::QUADS ? padded : 0, -1000);
    const std::vector<float> bias = some_floats(padded);
    for (const bool wide : {false, true}) {
        for (const bool biased : {false, true}) {
            std::vector<uint8_t> alone;
            for (const int threads : {1, 2, 3}) {
                std::vector<uint8_t> out(rows * outputs * (wide ? 4 : 2));
                quantgate_panel_linear(static_cast<int32_t>(form), x.data(), data.data(), scales,
                                       form == Form::QUADS ? code_sums.data() : nullptr,
                                       biased ? bias.data() : nullptr, out.data(), wide, rows, inputs, outputs,
                                       group_size, threads);
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

}  // namespace

int main() {
    quantgate_use_team(reinterpret_cast<void*>(run_team), reinterpret_cast<void*>(team_size));
    for (const int64_t rows : {1, 2, 3, 4, 11, 12, 13, 25, 64}) {
        for (const int64_t outputs : {1, 31, 32, 33, 70}) {
            for (const int64_t inputs : {1, 2, 3, 7, 8, 66}) {
                for (const Form form : {Form::BFLOAT16, Form::INT8, Form::QUADS}) {
                    multiply(form, rows, inputs, outputs, 0);
                }
            }
            for (const int64_t group_size : {8, 32, 64}) {
                multiply(Form::INT4, rows, 3 * group_size, outputs, group_size);
            }
        }
    }
    std::puts("finished");
}
