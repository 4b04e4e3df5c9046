// The sequences of a step.
#pragma once

#include <cstdint>

namespace quantgate {

// Where each sequence's rows of queries are, how long its context is with them, and which blocks hold it.
struct Sequences {
    const int32_t *query_starts, *context_lens, *block_tables;
    int64_t count;

    int64_t first_row(int64_t sequence) const { return query_starts[sequence]; }
    int64_t new_rows(int64_t sequence) const { return query_starts[sequence + 1] - query_starts[sequence]; }
};

}  // namespace quantgate
