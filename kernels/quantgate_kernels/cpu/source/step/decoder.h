// What a step program is made of: the decoder's weights, a step's rows, and the cache that they write to. The structures
// are laid out alike in decoder_layout.py, which fills them in.
#pragma once

#include <cstdint>

#include "common/number.h"
#include "products/panels.h"

namespace quantgate {

// order: int32 [inputs], input i of the weight is input order[i] of what it multiplies; null: they stand alike.
struct Projection {
    PanelWeight weight;
    const int32_t* order;
};

// norms: float32 [hidden]; those of heads float32 [head_dim], or none. gate_up is split: 16 gates and 16 ups a panel.
struct LayerWeights {
    const float *attention_norm, *ffn_norm, *query_norm, *key_norm;
    Projection query_key_value, attention_output, gate_up, down;
    // The last so many tokens are seen; 0: all.
    int64_t window;
};

// Keys and values of a layer's blocks; with scales they are int8 codes.
struct LayerCache {
    void *keys, *values;
    float *key_scales, *value_scales;
};

// cosines and sines: float32 [positions, head_dim], halves alike. embedding: bfloat16 [vocabulary, hidden], in panels.
struct Decoder {
    int64_t layers, hidden, heads, kv_heads, head_dim, ffn;
    float norm_eps, attention_scale;
    const float *cosines, *sines;
    const LayerWeights* weights;
    PanelWeight embedding;

    int64_t queries() const { return heads * head_dim; }
    int64_t query_key_values() const { return (heads + 2 * kv_heads) * head_dim; }
};

// One step: rows of sequences back to back, each sequence's last tokens. token_ids: int64 [rows]; query_starts: int32
// [sequences + 1]; context_lens: int32 [sequences], new rows included; block_tables: int32 [sequences, max_blocks].
// output_rows: int64 [output_count], ascending, the rows whose output is wanted; unused where all are.
struct Step {
    const int64_t* token_ids;
    const int32_t *query_starts, *context_lens, *block_tables;
    int64_t rows, sequences, block_size, max_blocks;
    const LayerCache* cache;
    const int64_t* output_rows;
    int64_t output_count;
};

}  // namespace quantgate
