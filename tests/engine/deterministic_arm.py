"""Deterministic engines for tests: arms, prompts that share prefixes, and the answers that they get."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.engine.kernel_sets import runnable

from quantgate_engine.clock import MonotonicClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.engine import EngineCore
from quantgate_engine.engine_totals import EngineTotals
from quantgate_engine.executor.base import SampledToken
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.model.model_folder import ModelFolder
from quantgate_engine.sampling_params import SamplingParams

OUTPUT_TOKENS = 8
Prompts = list[tuple[int, ...]]


@dataclass(frozen=True)
class Arm:
    """A kernel set and a scheme, and how many of the prompts it is asked."""

    kernel_set: Any
    scheme: str
    num_prompts: int = 16
    kv_dtype: Any = "auto"

    def executor(self, folder: ModelFolder, **settings: Any) -> TorchExecutor:
        return TorchExecutor.load(folder, self.scheme, self.config(**settings))

    def config(self, **settings: Any) -> EngineConfig:
        kernel_set = runnable(self.kernel_set)
        return EngineConfig(
            kernel_set=kernel_set, kv_dtype=self.kv_dtype, deterministic=True, **{"block_size": 4, **settings}
        )


def draw_prompts(count: int, longest: int, vocabulary: int) -> Prompts:
    """Of any length; two of three begin with one of two prefixes."""
    drawn = random.Random(7)

    def tokens(length: int) -> tuple[int, ...]:
        return tuple(drawn.randrange(3, vocabulary) for _ in range(length))

    prefixes = (tokens(longest // 2), tokens(longest // 2), ())
    return [prefixes[index % 3] + tokens(drawn.randint(1, longest // 2)) for index in range(count)]


def params_of(index: int) -> SamplingParams:
    """Greedy and drawn, with probabilities and without: they share the rows of a step."""
    kinds: tuple[dict[str, Any], ...] = ({"logprobs": 3}, {}, {"temperature": 0.9, "seed": index, "logprobs": 0})
    return SamplingParams(max_tokens=OUTPUT_TOKENS, ignore_eos=True, **kinds[index % 3])


def answers(
    executor: TorchExecutor, config: EngineConfig, prompts: Prompts, order: Sequence[int], together: bool = True
) -> tuple[dict[int, list[SampledToken]], EngineTotals]:
    """The prompts of these numbers, in this order: all at once, or each when the one before it is done."""
    core = EngineCore(executor, config, MonotonicClock())
    requests = {}
    for index in order:
        requests[index] = core.add_request(f"r{index}", prompts[index], params_of(index))
        while core.has_work and not together:
            core.step()
    while core.has_work:
        core.step()
    return {index: list(request.output) for index, request in requests.items()}, core.totals
