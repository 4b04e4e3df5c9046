// What a step keeps between its phases, and what each member of the team has to itself.
#pragma once

#include "step/decoder.h"
#include "step/input_rows.h"
#include "step/workspace.h"

namespace quantgate {

// positions, slots: of each row, in its sequence and in the cache. shared: inputs of products that all members read.
// attended: what attention gives. gated: silu of gates times ups.
struct StepWorkspace {
    int64_t *positions, *slots;
    RowBuffer shared;
    FinishedRows attended, gated;
    BFloat16 *query_key_values, *queries;
    // This member's alone; wide has room for one head in float32, scratch and unordered for one row each.
    RowBuffer own{};
    BFloat16 *scratch = nullptr, *unordered = nullptr;
    float* wide = nullptr;
    int64_t used;

    StepWorkspace(uint8_t* buffer, const Decoder& decoder, int64_t rows, int64_t members, int64_t member) {
        const int64_t widest = std::max({decoder.hidden, decoder.queries(), decoder.ffn});
        Carver carver(buffer);
        positions = carver.take<int64_t>(rows);
        slots = carver.take<int64_t>(rows);
        shared = carver.take_rows(rows, widest);
        attended = {carver.take<BFloat16>(rows * decoder.queries()), decoder.queries()};
        gated = {carver.take<BFloat16>(rows * decoder.ffn), decoder.ffn};
        query_key_values = carver.take<BFloat16>(rows * decoder.query_key_values());
        queries = carver.take<BFloat16>(rows * decoder.queries());
        for (int64_t index = 0; index < members; ++index) {
            const RowBuffer rows_of_it = carver.take_rows(ROWS_FOR_EACH_MEMBER, widest);
            BFloat16* scratch_of_it = carver.take<BFloat16>(widest);
            BFloat16* unordered_of_it = carver.take<BFloat16>(widest);
            float* wide_of_it = carver.take<float>(decoder.head_dim);
            if (index != member) continue;
            own = rows_of_it, scratch = scratch_of_it, unordered = unordered_of_it, wide = wide_of_it;
        }
        used = carver.used();
    }
};

}  // namespace quantgate
