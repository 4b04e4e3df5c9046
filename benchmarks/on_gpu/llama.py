"""The shape of Llama-3-8B, on which kernels and engine are measured."""

from __future__ import annotations

from typing import Any

HIDDEN, FFN, VOCABULARY, LAYERS = 4096, 14_336, 128_256, 32
HEADS, KV_HEADS, HEAD_DIM = 32, 8, 128
BLOCK_SIZE = 16
GROUP_SIZE = 128
"""Of INT4 weights."""

PRODUCTS = {
    "query_key_value": ((HEADS + 2 * KV_HEADS) * HEAD_DIM, HIDDEN),
    "attention_output": (HIDDEN, HEADS * HEAD_DIM),
    "gate_up": (2 * FFN, HIDDEN),
    "down": (HIDDEN, FFN),
}
"""(outputs, inputs) of a decoder layer's products."""

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "intermediate_size": FFN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500_000.0,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": False,
}
"""As its config.json has it."""
