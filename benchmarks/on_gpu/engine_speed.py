"""The engine's prefill and decode throughput, from its step log, with decode steps recorded as CUDA graphs and not."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from statistics import median
from typing import Any

import torch
from benchmarks.on_gpu.llama import BLOCK_SIZE, HIDDEN, VOCABULARY
from benchmarks.on_gpu.random_llama import random_llama

from quantgate_engine.clock import MonotonicClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.engine import EngineCore
from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.model_info import ModelInfo
from quantgate_engine.request import RequestState
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.step_record import StepRecord
from quantgate_kernels.roofline import DeviceLimits

SCHEMES = ("fp16", "int4-g128", "int8-w8a16", "int8-w8a8")
SETTLING = 4
"""First decode steps of a batch, which are not counted."""


@dataclass(frozen=True, slots=True)
class Load:
    """Prompts of `prompt` tokens, a step each; and batches that decode `answer` tokens behind `context`."""

    prompt: int = 2048
    prompts: int = 4
    batches: tuple[int, ...] = (1, 8, 32)
    context: int = 512
    answer: int = 48


LOAD = Load()

SETTINGS = EngineConfig(
    max_active_requests=max(LOAD.batches),
    max_step_tokens=LOAD.prompt,
    block_size=BLOCK_SIZE,
    max_context_tokens=LOAD.prompt + BLOCK_SIZE,
    num_kv_blocks=max(LOAD.batches) * (LOAD.context + LOAD.answer) // BLOCK_SIZE + LOAD.prompt // BLOCK_SIZE,
    device="cuda",
    kernel_set="triton",
)


@dataclass(frozen=True, slots=True)
class EngineSpeed:
    """tokens_per_s: prompt tokens of prefill steps, or output tokens of decode steps of `batch` sequences.

    cuda_graphs: whether decode steps were to be recorded. recorded_steps: how many shapes of them were. step_s: median
    duration of the phase's steps. bound_step_s: of decodes, what reading weights, head and cache takes at least. None
    where nothing ran.
    """

    scheme: str
    phase: str
    batch: int
    cuda_graphs: bool
    weight_bytes: int
    recorded_steps: int | None = None
    tokens_per_s: float | None = None
    step_s: float | None = None
    bound_step_s: float | None = None


def engine_speeds(
    scheme: str,
    device: torch.device,
    limits: DeviceLimits | None,
    settings: EngineConfig = SETTINGS,
    load: Load = LOAD,
) -> list[EngineSpeed]:
    try:
        return list(_with_graphs_and_without(scheme, device, limits, settings, load))
    finally:
        # The next scheme's weights want the memory of these.
        gc.collect()
        torch.cuda.empty_cache()


def _with_graphs_and_without(
    scheme: str, device: torch.device, limits: DeviceLimits | None, settings: EngineConfig, load: Load
) -> Iterator[EngineSpeed]:
    plain, recording = (replace(settings, cuda_graphs=graphs) for graphs in (False, True))
    with random_llama(device) as folder:
        executor = TorchExecutor.load(folder, scheme, plain)
    yield from _of_executor(executor, plain, limits, load)
    yield from _of_executor(executor.beside(recording), recording, limits, load)


def _of_executor(
    executor: TorchExecutor, settings: EngineConfig, limits: DeviceLimits | None, load: Load
) -> Iterator[EngineSpeed]:
    core, numbers = EngineCore(executor, settings, MonotonicClock()), count()

    def served(prompts: int, tokens: int, answer: int) -> list[StepRecord]:
        return _steps_of(core, numbers, executor.vocab_size, prompts, tokens, answer)

    info = executor.info
    row = partial(
        EngineSpeed,
        info.scheme,
        cuda_graphs=settings.cuda_graphs,
        weight_bytes=info.weight_bytes,
        recorded_steps=info.recorded_steps,
    )
    served(1, load.prompt, 2)
    steps = [step for step in served(load.prompts, load.prompt, 1) if step.prefill_tokens]
    seconds = sum(step.duration_ns for step in steps) / 1e9
    tokens = sum(step.prefill_tokens for step in steps)
    yield row("prefill", 1, tokens_per_s=tokens / seconds, step_s=_middle(steps))
    for batch in load.batches:
        served(batch, load.context, 2)
        steps = served(batch, load.context, load.answer)
        steps = [step for step in steps if step.decode_tokens == batch and not step.prefill_tokens][SETTLING:]
        step_s = _middle(steps)
        bound = None if limits is None else decode_bytes(info, batch, load) / limits.read_bytes_per_s
        yield row("decode", batch, tokens_per_s=batch / step_s, step_s=step_s, bound_step_s=bound)


def graphs_told(row: Mapping[str, Any]) -> str:
    """Whether decode steps of a row of the document were replayed; where nothing ran, whether they are to be."""
    if not row["cuda_graphs"]:
        return "no"
    return "yes" if row["recorded_steps"] or row["step_s"] is None else "none recorded"


def _middle(steps: list[StepRecord]) -> float:
    return median(step.duration_ns for step in steps) / 1e9


def decode_bytes(info: ModelInfo, batch: int, load: Load) -> int:
    """Weights, a 16-bit head, and the keys and values of contexts amid their answers."""
    seen = load.context + load.answer // 2
    return info.linear_weight_bytes + 2 * VOCABULARY * HIDDEN + batch * seen * info.kv_bytes_per_token


def _steps_of(
    core: EngineCore, numbers: Iterator[int], vocabulary: int, prompts: int, tokens: int, answer: int
) -> list[StepRecord]:
    """Prompts of random tokens, all in at once. Raises RuntimeError where one of them fails."""
    core.take_steps()
    params = SamplingParams(max_tokens=answer, temperature=0.0, ignore_eos=True)
    for _ in range(prompts):
        number = next(numbers)
        draw = random.Random(number)
        prompt = tuple(draw.randrange(vocabulary) for _ in range(tokens))
        core.add_request(f"r{number}", prompt, params)
    while core.has_work:
        for ended in core.step().ended:
            if ended.state is not RequestState.FINISHED:
                raise RuntimeError(f"request {ended.request_id} is {ended.state}: {ended.error}")
    return core.take_steps()
