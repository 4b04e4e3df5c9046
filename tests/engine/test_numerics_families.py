"""Each family's own parts against transformers: biases, tied and untied heads, head sizes, norms of heads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.engine.against_transformers import (
    decode_greedily,
    decoding_error,
    expected_logits,
    random_tokens,
    relative_difference,
)
from tests.engine.tiny_model import save_tiny_model

from quantgate_engine.config import EngineConfig
from quantgate_engine.errors import ModelError
from quantgate_engine.executor.torch_executor import TorchExecutor

TOLERANCE = 2e-5
ROPE = {"rope_type": "linear", "factor": 2.0, "rope_theta": 50_000.0}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama, attention biases": {"attention_bias": True},
    "llama, feed-forward biases": {"mlp_bias": True},
    "llama, heads wider than the model": {"head_dim": 48},
    "llama, untied": {"tie_word_embeddings": False},
    "mistral": {"model_type": "mistral", "sliding_window": None, "tie_word_embeddings": False, "head_dim": 16},
    "mistral, scaled": {"model_type": "mistral", "sliding_window": 20, "rope_parameters": ROPE},
    "qwen2": {"model_type": "qwen2", "tie_word_embeddings": False},
    "qwen2, scaled": {"model_type": "qwen2", "rope_parameters": ROPE},
    "qwen3": {"model_type": "qwen3", "head_dim": 64, "tie_word_embeddings": False},
    "qwen3, biases, scaled": {
        "model_type": "qwen3", "head_dim": 32, "attention_bias": True, "rope_parameters": ROPE,
    },
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_equals_transformers(family: str, tmp_path: Path) -> None:
    folder, model = save_tiny_model(tmp_path, **FAMILIES[family])
    executor = TorchExecutor.load(folder, "fp32", EngineConfig(num_kv_blocks=16))
    tokens = random_tokens(70)
    expected = expected_logits(model, tokens)
    assert expected.std() > 0.5  # a flat distribution would make the comparison easy
    for chunk_tokens in (None, 9):
        assert relative_difference(executor.logits(tokens, chunk_tokens), expected) < TOLERANCE
    prompt = random_tokens(30, seed=2)
    [drawn] = decode_greedily(executor, [prompt], steps=16, chunk=8)
    assert decoding_error(model, prompt, drawn) < TOLERANCE


@pytest.mark.parametrize("family", ["llama, attention biases", "qwen2"])
def test_a_16_bit_model_stays_close(family: str, tmp_path: Path) -> None:
    folder, model = save_tiny_model(tmp_path, **FAMILIES[family])
    tokens = random_tokens(40)
    expected = expected_logits(model, tokens)
    found = TorchExecutor.load(folder, "bf16", EngineConfig()).logits(tokens)
    assert 0 < (found - expected).std() < 0.03 * expected.std()


@pytest.mark.parametrize(
    ("family", "name", "message"),
    [
        ("qwen2", "self_attn.v_proj.bias", "lack the tensor"),
        ("llama, feed-forward biases", "mlp.up_proj.bias", "lack the tensor"),
        ("qwen3", "self_attn.k_norm.weight", "lack the tensor"),
        ("mistral", "self_attn.q_proj.bias", "has no place for"),
        ("llama, untied", "self_attn.q_norm.weight", "has no place for"),
    ],
)
def test_parts_that_the_family_needs_or_lacks_are_not_passed_over(
    family: str, name: str, message: str, tmp_path: Path
) -> None:
    """Each of them would change the answers without a word: a tensor is taken away where it is, and added where not."""
    folder, _ = save_tiny_model(tmp_path, **FAMILIES[family])
    path, name = tmp_path / "model.safetensors", f"model.layers.1.{name}"
    tensors = load_file(path)
    if tensors.pop(name, None) is None:
        tensors[name] = torch.ones(128)
    save_file(tensors, path)
    with pytest.raises(ModelError, match=f"{message}.*{name}"):
        TorchExecutor.load(folder, "fp32", EngineConfig())
