"""Logits of given tokens: continuations of one prompt against each sequence on its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.engine.tiny_model import save_tiny_model

from quantgate_engine import EngineConfig
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.executor.torch_executor import TorchExecutor

OPTIONS = [(5,), (7, 9), (7, 9, 11), tuple(range(20, 41))]


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> TorchExecutor:
    folder, _ = save_tiny_model(tmp_path_factory.mktemp("model"))
    return TorchExecutor.load(folder, "fp32", EngineConfig(max_step_tokens=32, num_kv_blocks=16))


@pytest.mark.parametrize("chunk_tokens", [None, 7])
@pytest.mark.parametrize("prompt_tokens", [1, 15, 16, 17, 40])
def test_continuations_equal_sequences_of_their_own(
    executor: TorchExecutor, prompt_tokens: int, chunk_tokens: int | None
) -> None:
    """Prompt lengths around a block's edge: the last block is full, or partly filled and copied."""
    prompt = [3 + (11 * index) % 250 for index in range(prompt_tokens)]
    together = executor.continuation_logits(prompt, OPTIONS, chunk_tokens)
    for option, logits in zip(OPTIONS, together, strict=True):
        alone = executor.logits([*prompt, *option[:-1]])[prompt_tokens - 1 :]
        assert logits.shape == (len(option), 257)
        torch.testing.assert_close(logits, alone, rtol=0, atol=1e-4)


def test_the_order_of_continuations_changes_nothing(executor: TorchExecutor) -> None:
    prompt = list(range(3, 24))
    forward = executor.continuation_logits(prompt, OPTIONS)
    backward = executor.continuation_logits(prompt, OPTIONS[::-1])[::-1]
    for one, other in zip(forward, backward, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5)


def test_every_logit_is_a_float32_product_however_few_the_rows(tmp_path: Path) -> None:
    """A 16-bit head rounds logits to steps of 2^-5 and more; probabilities need all of them."""
    folder, _ = save_tiny_model(tmp_path)
    bf16 = TorchExecutor.load(folder, "bf16", EngineConfig(num_kv_blocks=16))
    [few] = bf16.continuation_logits([3, 4, 5], [(6, 7)])
    assert not torch.equal(few, few.bfloat16().float())


def test_an_empty_continuation_or_one_that_does_not_fit_is_refused(executor: TorchExecutor) -> None:
    with pytest.raises(ConfigurationError, match="empty continuation"):
        executor.continuation_logits([3, 4], [(5,), ()])
    with pytest.raises(ConfigurationError, match="fit in 16 blocks of 16"):
        executor.continuation_logits([3] * 250, [(5,) * 20])


def test_answers_are_ordinary_tensors(executor: TorchExecutor) -> None:
    [logits] = executor.continuation_logits([3, 4], [(5, 6)])
    logits += 1.0
