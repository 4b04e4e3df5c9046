"""Scaled rotary embeddings against transformers: prefill, chunks and decode beyond the trained context."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.engine.against_transformers import (
    decode_greedily,
    decoding_error,
    expected_logits,
    random_tokens,
    relative_difference,
)
from tests.engine.tiny_model import save_tiny_model
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from quantgate_engine.config import EngineConfig
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.model.config_fields import ConfigFields
from quantgate_engine.model.rope_config import read_rope

TRAINED, STATED, PAIRS = 48, 256, 16
TOLERANCE = 2e-5
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": TRAINED}
SHORT = [1.0 + 0.05 * pair for pair in range(PAIRS)]
LONG = [1.0 + 0.5 * pair for pair in range(PAIRS)]
LONGROPE = {
    "rope_type": "longrope", "short_factor": SHORT, "long_factor": LONG, "original_max_position_embeddings": TRAINED,
}  # fmt: skip
VARIANTS: dict[str, dict[str, Any]] = {
    "linear": {"rope_type": "linear", "factor": 4.0},
    "llama3": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": TRAINED,
    },
    "yarn": YARN,
    "yarn, other ends": {**YARN, "beta_fast": 4.0, "beta_slow": 0.5, "truncate": False},
    "yarn, attention factor": {**YARN, "attention_factor": 1.3},
    "yarn, mscale": {**YARN, "mscale": 1.0, "mscale_all_dim": 0.4},
    "longrope": LONGROPE,
    "longrope, factors": {**LONGROPE, "factor": 2.0, "attention_factor": 1.2},
    "proportional": {"rope_type": "proportional", "partial_rotary_factor": 0.5, "factor": 2.0},
}  # fmt: skip


def scaled_model(folder: Path, **rope: Any) -> tuple[Any, Any]:
    return save_tiny_model(folder, max_position_embeddings=STATED, rope_parameters={"rope_theta": 10_000.0, **rope})


@pytest.mark.parametrize("variant", VARIANTS)
def test_scaled_models_equal_transformers_beyond_the_trained_context(variant: str, tmp_path: Path) -> None:
    folder, model = scaled_model(tmp_path / "scaled", **VARIANTS[variant])
    _, unscaled = save_tiny_model(tmp_path / "unscaled")
    executor = TorchExecutor.load(folder, "fp32", EngineConfig(num_kv_blocks=40))
    tokens = random_tokens(3 * TRAINED)
    expected = expected_logits(model, tokens)
    # The same weights without the scaling are far off, so that the comparison can tell.
    assert relative_difference(expected_logits(unscaled, tokens), expected) > 1000 * TOLERANCE
    for chunk_tokens in (None, 50, 7):
        assert relative_difference(executor.logits(tokens, chunk_tokens), expected) < TOLERANCE
    prompts = [random_tokens(TRAINED + 2, seed=3), random_tokens(2 * TRAINED, seed=4)]
    for prompt, drawn in zip(prompts, decode_greedily(executor, prompts, steps=12, chunk=20), strict=True):
        assert decoding_error(model, prompt, drawn) < TOLERANCE


def test_decode_steps_cross_the_trained_context(tmp_path: Path) -> None:
    """Not with longrope: there transformers itself would turn the keys again."""
    for name in ("linear", "llama3", "yarn"):
        folder, model = scaled_model(tmp_path / name, **VARIANTS[name])
        executor = TorchExecutor.load(folder, "fp32", EngineConfig(num_kv_blocks=16))
        prompt = random_tokens(TRAINED - 8)
        [drawn] = decode_greedily(executor, [prompt], steps=24, chunk=16)
        assert decoding_error(model, prompt, drawn) < TOLERANCE


def test_a_16_bit_model_is_scaled_too(tmp_path: Path) -> None:
    folder, model = scaled_model(tmp_path / "scaled", **YARN)
    _, unscaled = save_tiny_model(tmp_path / "unscaled")
    tokens = random_tokens(3 * TRAINED)
    found = TorchExecutor.load(folder, "bf16", EngineConfig()).logits(tokens)
    expected = expected_logits(model, tokens)
    assert (found - expected).std() < 0.06 * expected.std()
    assert (expected_logits(unscaled, tokens) - expected).std() > 0.3 * expected.std()


def test_longrope_takes_the_short_factors_where_no_sequence_can_outgrow_them(tmp_path: Path) -> None:
    folder, model = scaled_model(tmp_path, **LONGROPE)
    tokens = random_tokens(TRAINED)
    expected = expected_logits(model, tokens)
    short = TorchExecutor.load(folder, "fp32", EngineConfig(max_context_tokens=TRAINED))
    assert relative_difference(short.logits(tokens, 10), expected) < TOLERANCE
    long = TorchExecutor.load(folder, "fp32", EngineConfig(max_context_tokens=TRAINED + 1))
    assert relative_difference(long.logits(tokens, 10), expected) > 1000 * TOLERANCE


def test_dynamic_scaling_is_none_up_to_the_limit_which_no_sequence_passes(tmp_path: Path) -> None:
    dynamic = {"rope_type": "dynamic", "factor": 4.0}
    folder, model = save_tiny_model(tmp_path, max_position_embeddings=TRAINED, rope_parameters=dynamic)
    executor = TorchExecutor.load(folder, "fp32", EngineConfig())
    tokens = random_tokens(TRAINED)
    assert relative_difference(executor.logits(tokens, 7), expected_logits(model, tokens)) < TOLERANCE
    assert executor.max_context_tokens == TRAINED
    longer = expected_logits(model, [*tokens, 5])[:TRAINED]
    assert relative_difference(executor.logits(tokens), longer) > 1000 * TOLERANCE


@pytest.mark.parametrize(
    ("rope", "limit"),
    [
        (YARN, 4 * TRAINED),
        ({**YARN, "factor": 1.0}, STATED // 2),
        ({"rope_type": "yarn", "factor": 4.0}, 2 * STATED),
        ({"rope_type": "linear", "factor": 4.0}, STATED // 2),
    ],
    ids=["trained context stated", "a factor that adds nothing", "trained context not stated", "linear"],
)
def test_yarn_extends_the_context_to_what_its_factor_makes_of_it(
    rope: dict[str, Any], limit: int, tmp_path: Path
) -> None:
    folder, _ = save_tiny_model(
        tmp_path, max_position_embeddings=STATED // 2, rope_parameters={"rope_theta": 10_000.0, **rope}
    )
    assert TorchExecutor.load(folder, "fp32", EngineConfig()).max_context_tokens == limit


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("head_dim", "theta"), [(32, 10_000.0), (32, 500_000.0)])
def test_frequencies_equal_transformers(variant: str, head_dim: int, theta: float) -> None:
    rope = {"rope_theta": theta, **VARIANTS[variant]}
    config = LlamaConfig(
        hidden_size=4 * head_dim, num_attention_heads=4, max_position_embeddings=STATED, rope_parameters=dict(rope)
    )
    expected, attention_factor = ROPE_INIT_FUNCTIONS[rope["rope_type"]](config, torch.device("cpu"), seq_len=STATED)
    fields = ConfigFields(Path("config.json"), {"rope_parameters": rope})
    rotation = read_rope(fields, head_dim, STATED).rotation(head_dim, STATED)
    assert list(rotation.frequencies) == pytest.approx(expected.tolist(), rel=1e-5)
    assert rotation.attention_factor == pytest.approx(attention_factor, rel=1e-9)
