"""The whole engine over weights whose inputs stand in an order of their own: the bits of the same weights in order."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.engine.against_transformers import random_tokens
from tests.engine.kernel_sets import NAMED_SETS, runnable
from tests.engine.reordered_scheme import SCHEME, reorder_inputs
from tests.engine.tiny_model import save_tiny_model

from quantgate_engine.config import EngineConfig
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.model.config import read_decoder_config
from quantgate_kernels.cpu.kernels import STEP_PATH
from quantgate_kernels.kernel_set_names import KernelSetName

TOKENS = random_tokens(40)


def load(folder: Path, kernel_set: KernelSetName, deterministic: bool) -> TorchExecutor:
    model, _ = save_tiny_model(folder)
    config = EngineConfig(num_kv_blocks=16, kernel_set=runnable(kernel_set), deterministic=deterministic)
    return TorchExecutor.load(model, SCHEME, config)


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("kernel_set", NAMED_SETS)
def test_logits_are_those_of_inputs_in_order(
    kernel_set: KernelSetName, deterministic: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordered = load(tmp_path, kernel_set, deterministic)
    expected = {chunk: ordered.logits(TOKENS, chunk) for chunk in (None, 7, 1)}
    assert "reorder_inputs" not in ordered.info.kernel_paths
    with monkeypatch.context() as patch:
        reorder_inputs(patch)
        reordered = load(tmp_path, kernel_set, deterministic)
    for chunk, logits in expected.items():
        assert torch.equal(reordered.logits(TOKENS, chunk), logits)
    in_steps = kernel_set == "cpu" and not deterministic
    assert reordered.info.kernel_paths["reorder_inputs"] == (STEP_PATH if in_steps else "torch.index_select")
    config = read_decoder_config(tmp_path)
    widths = (config.hidden_size, config.hidden_size, config.num_heads * config.head_dim, config.ffn_size)
    order_bytes = 4 * config.num_layers * sum(widths)
    assert reordered.info.linear_weight_bytes == ordered.info.linear_weight_bytes + order_bytes
    assert reordered.info.weight_bytes == ordered.info.weight_bytes + order_bytes


@pytest.mark.parametrize("kernel_set", NAMED_SETS)
def test_an_order_that_is_not_the_weights_is_seen(
    kernel_set: KernelSetName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = load(tmp_path, kernel_set, deterministic=False).logits(TOKENS)
    reorder_inputs(monkeypatch, codes_too=False)
    assert not torch.allclose(load(tmp_path, kernel_set, deterministic=False).logits(TOKENS), expected, atol=0.1)
