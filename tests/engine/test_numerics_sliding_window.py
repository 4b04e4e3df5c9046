"""Sliding windows against transformers: every family that has them, in all layers or in some."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.engine.against_transformers import (
    decode_greedily,
    decoding_error,
    expected_logits,
    random_tokens,
    relative_difference,
)
from tests.engine.kernel_sets import NAMED_SETS, runnable
from tests.engine.tiny_model import save_tiny_model

from quantgate_engine.config import EngineConfig
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.model.config import read_decoder_config
from quantgate_kernels.kernel_set_names import KernelSetName

WINDOW, TOKENS = 12, 70
TOLERANCE = 2e-5
QWEN = {"use_sliding_window": True, "sliding_window": WINDOW}
FULL, SLIDING = "full_attention", "sliding_attention"
FAMILIES: dict[str, dict[str, Any]] = {
    "mistral": {"model_type": "mistral", "sliding_window": WINDOW},
    "qwen2, upper layers": {"model_type": "qwen2", **QWEN, "max_window_layers": 1},
    "qwen2, all layers": {"model_type": "qwen2", **QWEN, "max_window_layers": 0},
    "qwen3, named layers": {"model_type": "qwen3", "head_dim": 32, **QWEN, "layer_types": [SLIDING, FULL, SLIDING]},
}
EXPECTED_WINDOWS = {
    "mistral": (WINDOW,) * 3,
    "qwen2, upper layers": (None, WINDOW, WINDOW),
    "qwen2, all layers": (WINDOW,) * 3,
    "qwen3, named layers": (WINDOW, None, WINDOW),
}
NO_WINDOW = {"sliding_window": None, "use_sliding_window": False, "layer_types": [FULL] * 3}


def unlimited(folder: Path, family: str) -> Any:
    """The same weights without windows."""
    changes = {key: value for key, value in NO_WINDOW.items() if key in FAMILIES[family]}
    return save_tiny_model(folder, **{**FAMILIES[family], **changes})[1]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kernel_set", NAMED_SETS)
def test_windows_equal_transformers_in_prefill_chunks_and_decode(
    kernel_set: KernelSetName, family: str, tmp_path: Path
) -> None:
    folder, model = save_tiny_model(tmp_path / "sliding", **FAMILIES[family])
    executor = TorchExecutor.load(folder, "fp32", EngineConfig(num_kv_blocks=32, kernel_set=runnable(kernel_set)))
    tokens = random_tokens(TOKENS)
    expected = expected_logits(model, tokens)
    assert relative_difference(expected_logits(unlimited(tmp_path / "whole", family), tokens), expected) > 0.02
    for chunk_tokens in (None, 7, 1):
        assert relative_difference(executor.logits(tokens, chunk_tokens), expected) < TOLERANCE
    # One prompt is shorter than the window and decodes past it, the other starts beyond it.
    prompts = [random_tokens(5, seed=3), random_tokens(3 * WINDOW, seed=4)]
    for prompt, drawn in zip(prompts, decode_greedily(executor, prompts, steps=2 * WINDOW, chunk=9), strict=True):
        assert decoding_error(model, prompt, drawn) < TOLERANCE


@pytest.mark.parametrize("window", [1, 15, 16, 17, TOKENS - 1, TOKENS])
def test_windows_of_any_length_against_blocks_of_16(window: int, tmp_path: Path) -> None:
    folder, model = save_tiny_model(tmp_path, model_type="mistral", sliding_window=window)
    tokens = random_tokens(TOKENS)
    found = TorchExecutor.load(folder, "fp32", EngineConfig(num_kv_blocks=8)).logits(tokens, 11)
    assert relative_difference(found, expected_logits(model, tokens)) < TOLERANCE


@pytest.mark.parametrize("window", [63, 64, 65])
def test_a_window_hides_nothing_only_where_it_covers_the_longest_context(window: int, tmp_path: Path) -> None:
    folder, model = save_tiny_model(tmp_path, model_type="mistral", sliding_window=window)
    executor = TorchExecutor.load(folder, "fp32", EngineConfig(max_context_tokens=64))
    tokens = random_tokens(64)
    assert relative_difference(executor.logits(tokens), expected_logits(model, tokens)) < TOLERANCE


@pytest.mark.parametrize("family", FAMILIES)
def test_each_layer_has_its_own_window(family: str, tmp_path: Path) -> None:
    save_tiny_model(tmp_path, **FAMILIES[family])
    assert read_decoder_config(tmp_path).windows == EXPECTED_WINDOWS[family]
