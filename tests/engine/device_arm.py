"""An engine over a small model whose executor computes on the host itself, or beside it on a device that is a tape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.engine.against_transformers import random_tokens
from tests.engine.tape_accelerator import TapeAccelerator

from quantgate_engine.clock import MonotonicClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.engine import EngineCore
from quantgate_engine.engine_totals import EngineTotals
from quantgate_engine.executor.base import SampledToken, ScheduledSequence
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.model.model_folder import ModelFolder
from quantgate_engine.sampling_params import SamplingParams
from quantgate_kernels.reference.kernels import ReferenceKernels

PARAMS = [
    SamplingParams(max_tokens=14, ignore_eos=True),
    SamplingParams(max_tokens=9, ignore_eos=True, temperature=0.8, seed=5),
    SamplingParams(max_tokens=11, ignore_eos=True, logprobs=3),
    SamplingParams(max_tokens=12, ignore_eos=True, temperature=1.0, seed=6, repetition_penalty=1.3),
    SamplingParams(max_tokens=7, ignore_eos=True),
]
LENGTHS = [5, 37, 18, 1, 26]


class RecordableReference(ReferenceKernels):
    """On the CPU, where a tensor that is made of a list waits for no transfer."""

    recordable = True


def config(**changes: Any) -> EngineConfig:
    settings: dict[str, Any] = {"max_active_requests": 5, "max_step_tokens": 24, "num_kv_blocks": 40, "block_size": 8}
    return EngineConfig(**settings | changes)


def load(folder: ModelFolder, settings: EngineConfig, accelerator: TapeAccelerator | None) -> TorchExecutor:
    return TorchExecutor.load(folder, "fp32", settings, RecordableReference(), accelerator=accelerator)


def answers(executor: TorchExecutor, settings: EngineConfig) -> tuple[list[tuple[SampledToken, ...]], EngineTotals]:
    """The tokens of one request for each of PARAMS, all in at once, and what the engine counted."""
    core = EngineCore(executor, settings, MonotonicClock())
    requests = [
        core.add_request(f"r{index}", tuple(random_tokens(length, seed=index)), params)
        for index, (length, params) in enumerate(zip(LENGTHS, PARAMS, strict=True))
    ]
    while core.has_work:
        core.step()
    assert all(request.error is None for request in requests)
    return [tuple(request.output) for request in requests], core.totals


def assert_same(found: Sequence[Sequence[SampledToken]], expected: Sequence[Sequence[SampledToken]]) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert [token.token_id for token in ours] == [token.token_id for token in theirs]
        for one, other in zip(ours, theirs, strict=True):
            assert one.logprob == (other.logprob if other.logprob is None else pytest.approx(other.logprob, abs=1e-4))


def sequence(index: int, length: int, block: int, params: SamplingParams = PARAMS[0]) -> ScheduledSequence:
    return ScheduledSequence(f"r{index}", (index + 3,), length - 1, (block,), sample=True, params=params)
