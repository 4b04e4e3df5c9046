"""The decoder's logits against transformers' own, on small random models of every family and shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.engine.against_transformers import (
    GREEDY,
    decode_greedily,
    expected_logits,
    largest_difference,
    random_tokens,
)
from tests.engine.kernel_sets import NAMED_SETS, runnable
from tests.engine.tiny_model import save_tiny_model

from quantgate_engine.config import EngineConfig
from quantgate_engine.executor.base import ScheduledSequence
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_kernels.kernel_set_names import KernelSetName

FAMILIES: dict[str, dict[str, Any]] = {
    "group 2": {},
    "group 1": {"num_key_value_heads": 4},
    "group 4": {"num_key_value_heads": 1},
    "group 3": {"hidden_size": 96, "num_attention_heads": 6, "num_key_value_heads": 2},
    "untied with biases": {"tie_word_embeddings": False, "attention_bias": True, "mlp_bias": True},
    "mistral": {"model_type": "mistral", "sliding_window": None},
    "qwen2": {"model_type": "qwen2"},
    "qwen3": {"model_type": "qwen3", "head_dim": 16},
}


@pytest.mark.parametrize("chunk_tokens", [None, 7, 1], ids=["whole", "chunks of 7", "token by token"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kernel_set", NAMED_SETS)
def test_logits_equal_transformers(
    kernel_set: KernelSetName, family: str, chunk_tokens: int | None, tmp_path: Path
) -> None:
    folder, model = save_tiny_model(tmp_path, **FAMILIES[family])
    executor = TorchExecutor.load(folder, "fp32", EngineConfig(kernel_set=runnable(kernel_set)))
    tokens = random_tokens(70)
    expected = expected_logits(model, tokens)
    assert expected.std() > 0.5  # a flat distribution would make the comparison easy
    assert largest_difference(executor.logits(tokens, chunk_tokens), expected) < 1e-4


@pytest.mark.parametrize("family", ["group 2", "group 3", "qwen3"])
@pytest.mark.parametrize("kernel_set", NAMED_SETS)
def test_ragged_batches_decode_what_transformers_decodes(
    kernel_set: KernelSetName, family: str, tmp_path: Path
) -> None:
    """Prompts of 3 to 60 tokens, chunked prefill beside decodes, then 32 decode steps: tokens and log-probabilities."""
    folder, model = save_tiny_model(tmp_path, **FAMILIES[family])
    executor = TorchExecutor.load(folder, "fp32", EngineConfig(num_kv_blocks=40, kernel_set=runnable(kernel_set)))
    prompts = [random_tokens(count, seed=count) for count in (3, 17, 60, 33)]
    together = decode_greedily(executor, prompts, steps=32, chunk=5)
    for prompt, drawn in zip(prompts, together, strict=True):
        tokens = [sampled.token_id for sampled in drawn]
        expected = expected_logits(model, prompt + tokens)[len(prompt) - 1 : -1]
        assert tokens == expected.argmax(-1).tolist()
        logprobs = expected.log_softmax(-1)
        for sampled, row in zip(drawn, logprobs, strict=True):
            assert sampled.logprob == pytest.approx(float(row[sampled.token_id]), abs=1e-4)
            assert [value for _, value in sampled.top_logprobs] == pytest.approx(row.topk(5).values.tolist(), abs=1e-4)
        [alone] = decode_greedily(executor, [prompt], steps=32, chunk=64)
        assert [sampled.token_id for sampled in alone] == tokens


def test_only_the_last_row_of_a_chunk_that_samples_is_drawn_from(tmp_path: Path) -> None:
    folder, _ = save_tiny_model(tmp_path)
    executor = TorchExecutor.load(folder, "fp32", EngineConfig(num_kv_blocks=8))
    tokens = tuple(random_tokens(20))
    first = ScheduledSequence("a", tokens[:12], 0, (3, 5), sample=False, params=GREEDY)
    second = ScheduledSequence("a", tokens[12:], 12, (3, 5), sample=True, params=GREEDY)
    assert executor.execute(()) == []
    assert executor.execute((first,)) == [None]
    [sampled] = executor.execute((second,))
    assert sampled is not None
    assert sampled.token_id == int(executor.logits(list(tokens))[-1].argmax())


def test_logits_leave_the_blocks_of_running_requests_alone(tmp_path: Path) -> None:
    folder, _ = save_tiny_model(tmp_path)
    executor = TorchExecutor.load(folder, "fp32", EngineConfig(num_kv_blocks=4))
    prompt = tuple(random_tokens(20))
    executor.execute((ScheduledSequence("a", prompt, 0, (0, 1), sample=False, params=GREEDY),))
    executor.logits(random_tokens(40, seed=9))
    decode = ScheduledSequence("a", (7,), 20, (0, 1), sample=True, params=GREEDY)
    [sampled] = executor.execute((decode,))
    assert sampled is not None
    assert sampled.token_id == int(executor.logits([*prompt, 7])[-1].argmax())


def test_logits_are_the_callers_to_change(tmp_path: Path) -> None:
    folder, _ = save_tiny_model(tmp_path)
    logits = TorchExecutor.load(folder, "fp32", EngineConfig()).logits(random_tokens(5))
    assert (logits.clone().mul_(0) == logits.mul_(0)).all()
