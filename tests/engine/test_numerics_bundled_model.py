"""The bundled model against transformers on the same weights, in float32."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.engine.kernel_sets import NAMED_SETS, runnable
from transformers import AutoModelForCausalLM, AutoTokenizer

from quantgate_engine.config import EngineConfig
from quantgate_engine.executor.base import ScheduledSequence
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.model.catalog import resolve_model
from quantgate_engine.model.model_folder import ModelFolder
from quantgate_engine.sampling_params import SamplingParams

pytestmark = pytest.mark.model
DECODE_STEPS = 32
BLOCKS_PER_SEQUENCE = 24
TEXTS = (
    "The tide comes in twice a day because the Earth turns under two bulges of water: one towards the Moon, one away "
    "from it. Between them the sea falls back, and the boats in the harbour settle on the mud.",
    "def merge(left, right):\n    merged = []\n    while left and right:\n        source = left if left[0] <= right[0] "
    "else right\n        merged.append(source.pop(0))\n    return merged + left + right\n" * 3,
    "Invoice 2024-0317: 12 boxes at 8.50, 3 pallets at 41.00, delivery 19.90; due on 2024-04-16. " * 5,
)


@pytest.fixture(scope="module")
def folder() -> ModelFolder:
    return resolve_model("smollm2-135m-instruct")


@pytest.fixture(scope="module", params=NAMED_SETS)
def executor(request: pytest.FixtureRequest, folder: ModelFolder) -> TorchExecutor:
    config = EngineConfig(max_active_requests=3, kernel_set=runnable(request.param))
    return TorchExecutor.load(folder, "fp32", config)


@pytest.fixture(scope="module")
def references(folder: ModelFolder) -> list[tuple[list[int], torch.Tensor]]:
    """Each text's tokens, and transformers' logits after each of them: float32 [tokens, vocab]."""
    tokenizer: Any = AutoTokenizer.from_pretrained(folder.path)
    model: Any = AutoModelForCausalLM.from_pretrained(folder.path, dtype=torch.float32).eval()
    tokenized = [tokenizer(text).input_ids for text in TEXTS]
    with torch.no_grad():
        return [(tokens, model(torch.tensor([tokens])).logits[0]) for tokens in tokenized]


def test_prefill_logits(executor: TorchExecutor, references: list[tuple[list[int], torch.Tensor]]) -> None:
    for tokens, expected in references:
        for chunk_tokens in (None, 50):
            assert (executor.logits(tokens, chunk_tokens) - expected).abs().max() < 1e-3


@pytest.mark.parametrize("group", [(0,), (1,), (2,), (0, 1, 2)], ids=["first", "second", "third", "batched"])
def test_decode_steps(
    group: tuple[int, ...], executor: TorchExecutor, references: list[tuple[list[int], torch.Tensor]]
) -> None:
    """Prefills all but the last 32 tokens, then feeds those one a step: the 20 likeliest at each step must agree."""
    params = SamplingParams(logprobs=20)
    for step in range(DECODE_STEPS):
        sequences = []
        for index in group:
            tokens, _ = references[index]
            end = len(tokens) - DECODE_STEPS + step
            start = end - 1 if step else 0
            table = tuple(range(index * BLOCKS_PER_SEQUENCE, (index + 1) * BLOCKS_PER_SEQUENCE))
            part = tuple(tokens[start:end])
            sequences.append(ScheduledSequence(str(index), part, start, table, sample=True, params=params))
        for index, sampled in zip(group, executor.execute(tuple(sequences)), strict=True):
            tokens, logits = references[index]
            expected = logits[len(tokens) - DECODE_STEPS + step - 1]
            assert sampled is not None
            assert sampled.token_id == int(expected.argmax())
            logprobs = expected.log_softmax(-1)
            for token_id, logprob in sampled.top_logprobs:
                assert logprob == pytest.approx(float(logprobs[token_id]), abs=1e-3)


def test_every_scheme_stores_the_bytes_that_it_claims(folder: ModelFolder) -> None:
    infos = {
        name: TorchExecutor.load(folder, name, EngineConfig(num_kv_blocks=1)).info
        for name in ("fp16", "int8-w8a16", "int4-g64")
    }
    linear = {name: info.linear_weight_bytes for name, info in infos.items()}
    assert linear["fp16"] == 2 * 106_168_320
    assert linear["int8-w8a16"] < 0.51 * linear["fp16"]
    assert linear["int4-g64"] < 0.60 * linear["int8-w8a16"]
