"""A tiny GGUF file of the llama family, quantized to Q4_1 as the bundled model is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

HIDDEN, FFN, LAYERS, HEADS, KV_HEADS, CONTEXT = 64, 96, 2, 4, 2, 128
SPECIAL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHAT_TEMPLATE = "{% for message in messages %}{{ message['role'] + ': ' + message['content'] }}{% endfor %}"


def byte_alphabet() -> list[str]:
    """GPT-2's printable stand-ins for the 256 bytes (openai/gpt-2, encoder.py, bytes_to_unicode)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    stand_ins = {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}
    return [stand_ins[byte] for byte in range(256)]


def _matrices(vocabulary: int) -> dict[str, tuple[int, int]]:
    kv_width = HIDDEN // HEADS * KV_HEADS
    shapes = {"token_embd.weight": (vocabulary, HIDDEN)}
    for layer in range(LAYERS):
        shapes |= {
            f"blk.{layer}.attn_q.weight": (HIDDEN, HIDDEN),
            f"blk.{layer}.attn_k.weight": (kv_width, HIDDEN),
            f"blk.{layer}.attn_v.weight": (kv_width, HIDDEN),
            f"blk.{layer}.attn_output.weight": (HIDDEN, HIDDEN),
            f"blk.{layer}.ffn_gate.weight": (FFN, HIDDEN),
            f"blk.{layer}.ffn_up.weight": (FFN, HIDDEN),
            f"blk.{layer}.ffn_down.weight": (HIDDEN, FFN),
        }
    return shapes


def _norms() -> list[str]:
    layers = [f"blk.{layer}.{part}_norm.weight" for layer in range(LAYERS) for part in ("attn", "ffn")]
    return [*layers, "output_norm.weight"]


def write_tiny_gguf(
    path: Path, pretokenizer: str = "smollm", rope_freqs: list[float] | None = None, **metadata: Any
) -> Path:
    """`metadata`: keys of the llama architecture (dots as double underscores) to add as integers, floats or strings.

    rope_freqs: the tensor of divisors of the rotary frequencies.
    """
    generator = np.random.default_rng(5)
    merges = ["a b", "Ġ 1", "Ġ Ġ"]
    tokens = [*SPECIAL_TOKENS, *byte_alphabet(), "ab", "Ġ1", "ĠĠ"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(50000.0)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pretokenizer)
    writer.add_token_list(tokens)
    writer.add_token_types([3] * len(SPECIAL_TOKENS) + [1] * (len(tokens) - len(SPECIAL_TOKENS)))
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(CHAT_TEMPLATE)
    for key, value in metadata.items():
        add = {str: writer.add_string, float: writer.add_float32, int: writer.add_uint32}[type(value)]
        add(f"llama.{key.replace('__', '.')}", value)
    for name, shape in _matrices(len(tokens)).items():
        values = generator.standard_normal(shape, dtype=np.float32)
        kind = gguf.GGMLQuantizationType.Q8_0 if name.startswith("token") else gguf.GGMLQuantizationType.Q4_1
        writer.add_tensor(name, gguf.quantize(values, kind), raw_dtype=kind)
    for name in _norms():
        writer.add_tensor(name, generator.uniform(0.5, 1.5, HIDDEN).astype(np.float32))
    if rope_freqs is not None:
        writer.add_tensor("rope_freqs.weight", np.array(rope_freqs, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture
def make_gguf(tmp_path: Path) -> Callable[..., Path]:
    return lambda **settings: write_tiny_gguf(tmp_path / "tiny-source.gguf", **settings)
