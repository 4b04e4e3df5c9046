// A decoder of two layers for the step program, with sizes that fill neither a vector register nor a panel, and a step
// of it with a paged cache.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "some_weights.h"
#include "step/decoder.h"

namespace sanitized {

// No context of a step is longer than POSITIONS.
constexpr int64_t POSITIONS = 300;
constexpr int64_t LAYERS = 2, HIDDEN = 40, HEADS = 4, KV_HEADS = 2, VOCABULARY = 70, BLOCK_SIZE = 4, WINDOW = 6;

struct Shape {
    Form form;
    int64_t head_dim, ffn;
    bool with_biases, with_head_norms, with_orders;
};

// The widest groups that divide the inputs; where none does, one of all of them. Those of codes of 8 bits have zeros and
// scales in float16.
inline Weight some_weight(Form form, int64_t inputs, int64_t outputs) {
    const bool bytes = form == Form::INT8_GROUPS;
    return Weight(form, inputs, outputs, inputs % 32 == 0 ? 32 : inputs % 8 == 0 ? 8 : inputs, {bytes, bytes});
}

struct Layer {
    std::vector<float> attention_norm = some_floats(HIDDEN), ffn_norm = some_floats(HIDDEN), query_norm, key_norm;
    Weight query_key_value, attention_output, gate_up, down;
    std::vector<int32_t> hidden_order = some_order(HIDDEN), attended_order, gated_order;

    explicit Layer(const Shape& shape)
        : query_norm(some_floats(shape.head_dim)), key_norm(some_floats(shape.head_dim)),
          query_key_value(some_weight(shape.form, HIDDEN, (HEADS + 2 * KV_HEADS) * shape.head_dim)),
          attention_output(some_weight(shape.form, HEADS * shape.head_dim, HIDDEN)),
          gate_up(some_weight(shape.form, HIDDEN, 2 * shape.ffn)), down(some_weight(shape.form, shape.ffn, HIDDEN)),
          attended_order(some_order(HEADS * shape.head_dim)), gated_order(some_order(shape.ffn)) {}

    quantgate::LayerWeights view(const Shape& shape, int64_t window) const {
        const bool biased = shape.with_biases;
        const auto order = [&](const std::vector<int32_t>& own) { return shape.with_orders ? own.data() : nullptr; };
        return {attention_norm.data(),
                ffn_norm.data(),
                shape.with_head_norms ? query_norm.data() : nullptr,
                shape.with_head_norms ? key_norm.data() : nullptr,
                {query_key_value.view(biased), order(hidden_order)},
                {attention_output.view(biased), order(attended_order)},
                {gate_up.view(biased), order(hidden_order)},
                {down.view(biased), order(gated_order)},
                window};
    }
};

struct Model {
    Shape shape;
    Layer first, second;
    Weight embedding, head;
    std::vector<float> final_norm = some_floats(HIDDEN), cosines, sines;
    std::vector<quantgate::LayerWeights> layers;

    explicit Model(const Shape& shape)
        : shape(shape), first(shape), second(shape), embedding(Form::BFLOAT16, HIDDEN, VOCABULARY, 0),
          head(some_weight(shape.form, HIDDEN, VOCABULARY)), cosines(some_floats(POSITIONS * shape.head_dim)),
          sines(some_floats(POSITIONS * shape.head_dim)), layers{first.view(shape, 0), second.view(shape, WINDOW)} {
        // Members of a team then find equal logits, of which the first token's counts.
        head.repeat_first_panel_as_last();
    }

    quantgate::Decoder decoder() const {
        const float attention_scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
        return {LAYERS,          HIDDEN,         HEADS,        KV_HEADS,      shape.head_dim,      shape.ffn, 1e-5f,
                attention_scale, cosines.data(), sines.data(), layers.data(), embedding.view(false)};
    }
};

// The context counts the new rows, which are its last.
struct Sequence {
    int64_t context, new_rows;
};

// Blocks of sequences lie in any order; what a table has behind them is no block.
struct Rows {
    std::vector<int64_t> token_ids, earlier_slots;
    std::vector<int32_t> query_starts{0}, context_lens, block_tables;
    int64_t blocks = 0, max_blocks = 0;

    explicit Rows(const std::vector<Sequence>& sequences) {
        constexpr int32_t NO_BLOCK = 1 << 20;
        for (const Sequence& sequence : sequences) {
            blocks += blocks_of(sequence);
            max_blocks = std::max(max_blocks, blocks_of(sequence));
        }
        std::vector<int32_t> free(blocks);
        for (int64_t block = 0; block < blocks; ++block) {
            free[block] = static_cast<int32_t>(block);
            std::swap(free[block], free[next_random() % (block + 1)]);
        }
        for (const Sequence& sequence : sequences) {
            std::vector<int32_t> table(max_blocks, NO_BLOCK);
            for (int64_t block = 0; block < blocks_of(sequence); ++block) {
                table[block] = free.back();
                free.pop_back();
            }
            for (int64_t position = 0; position < sequence.context - sequence.new_rows; ++position) {
                earlier_slots.push_back(table[position / BLOCK_SIZE] * BLOCK_SIZE + position % BLOCK_SIZE);
            }
            block_tables.insert(block_tables.end(), table.begin(), table.end());
            context_lens.push_back(static_cast<int32_t>(sequence.context));
            query_starts.push_back(static_cast<int32_t>(query_starts.back() + sequence.new_rows));
        }
        token_ids.resize(query_starts.back());
        for (int64_t& token : token_ids) token = next_random() % VOCABULARY;
        // The first and the last row of the table.
        token_ids.front() = 0, token_ids.back() = VOCABULARY - 1;
    }

    int64_t count() const { return static_cast<int64_t>(token_ids.size()); }

    // Each sequence's last row.
    std::vector<int64_t> ends() const {
        std::vector<int64_t> rows;
        for (size_t sequence = 1; sequence < query_starts.size(); ++sequence) rows.push_back(query_starts[sequence] - 1);
        return rows;
    }

    // output_rows: those that are read; null: all of them.
    quantgate::Step step(const quantgate::LayerCache* cache, const std::vector<int64_t>* output_rows) const {
        const bool all = output_rows == nullptr;
        return {token_ids.data(), query_starts.data(), context_lens.data(), block_tables.data(),
                count(), static_cast<int64_t>(context_lens.size()), BLOCK_SIZE, max_blocks, cache,
                all ? nullptr : output_rows->data(), all ? count() : static_cast<int64_t>(output_rows->size())};
    }

private:
    static int64_t blocks_of(const Sequence& sequence) { return (sequence.context + BLOCK_SIZE - 1) / BLOCK_SIZE; }
};

// Bytes, of which every float and bfloat16 is a NaN: what comes of them is seen in the results.
inline std::vector<uint8_t> nans(int64_t bytes) { return std::vector<uint8_t>(bytes, uint8_t{0xff}); }

// A layer's keys and values: numbers where earlier steps have written, and NaNs elsewhere.
struct CacheMemory {
    std::vector<uint8_t> keys, values, key_scales, value_scales;

    CacheMemory(const Rows& rows, int64_t head_dim, bool int8) {
        for (std::vector<uint8_t>* scales : {&key_scales, &value_scales}) {
            if (int8) *scales = some_entries(rows, some_floats(KV_HEADS, 1.0f / 128.0f));
        }
        for (std::vector<uint8_t>* numbers : {&keys, &values}) {
            *numbers = int8 ? some_entries(rows, std::vector<int8_t>(KV_HEADS * head_dim, 77))
                            : some_entries(rows, some_numbers(KV_HEADS * head_dim));
        }
    }

    quantgate::LayerCache view() {
        const bool int8 = !key_scales.empty();
        return {keys.data(), values.data(), int8 ? reinterpret_cast<float*>(key_scales.data()) : nullptr,
                int8 ? reinterpret_cast<float*>(value_scales.data()) : nullptr};
    }

    bool operator==(const CacheMemory& other) const {
        return keys == other.keys && values == other.values && key_scales == other.key_scales &&
               value_scales == other.value_scales;
    }

private:
    // Each earlier slot has the same numbers, turned round by as many places as its own number says.
    template <class Number>
    static std::vector<uint8_t> some_entries(const Rows& rows, std::vector<Number> entry) {
        const auto bytes = static_cast<int64_t>(entry.size() * sizeof(Number));
        std::vector<uint8_t> all = nans(rows.blocks * BLOCK_SIZE * bytes);
        for (const int64_t slot : rows.earlier_slots) {
            std::rotate(entry.begin(), entry.begin() + slot % entry.size(), entry.end());
            std::memcpy(all.data() + slot * bytes, entry.data(), bytes);
        }
        return all;
    }
};

}  // namespace sanitized
