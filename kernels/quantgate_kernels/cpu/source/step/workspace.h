// The memory of a step: carved from one buffer that the caller keeps from step to step, so that nothing is allocated.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "common/number.h"
#include "products/panels.h"

namespace quantgate {

// Up to so many rows, each member of a team prepares all of a product's input rows for itself: that takes less time than
// meeting the others once more.
constexpr int64_t ROWS_FOR_EACH_MEMBER = 4;

// Rows of bfloat16, or of codes + 128 with a scale each. A row ends with zeros to a whole step of any form.
struct RowBuffer {
    uint8_t* numbers;
    float* scales;
    int64_t row_bytes;

    BFloat16* row(int64_t index) const { return reinterpret_cast<BFloat16*>(numbers + index * row_bytes); }
    InputRows view(int64_t rows) const { return {numbers, scales, row_bytes, rows}; }

    // What lies behind a row of bfloat16 is multiplied by weights that are zero, which a NaN would survive.
    void clear_tail(int64_t index, int64_t size) const {
        uint8_t* begin = numbers + index * row_bytes;
        std::memset(begin + size * 2, 0, row_bytes - size * 2);
    }
};

constexpr int64_t padded_row_bytes(int64_t numbers) { return (numbers * 2 + 63) / 64 * 64; }

// Hands out parts of a buffer, each on a cache line of its own; with a null buffer it only counts.
class Carver {
public:
    explicit Carver(uint8_t* buffer) : buffer_(buffer) {}

    template <class Number>
    Number* take(int64_t count) {
        uint8_t* part = buffer_ == nullptr ? nullptr : buffer_ + used_;
        used_ += (count * static_cast<int64_t>(sizeof(Number)) + 63) / 64 * 64;
        return reinterpret_cast<Number*>(part);
    }

    RowBuffer take_rows(int64_t rows, int64_t numbers) {
        const int64_t row_bytes = padded_row_bytes(numbers);
        uint8_t* bytes = take<uint8_t>(rows * row_bytes);
        return {bytes, take<float>(rows), row_bytes};
    }

    int64_t used() const { return used_; }

private:
    uint8_t* buffer_;
    int64_t used_ = 0;
};

}  // namespace quantgate
