"""Takes the shape and the time of every step that an engine computes."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.practice_cost_fit import StepTimes

from quantgate.workload.plan import PlannedRequest
from quantgate_engine import LLM, SamplingParams
from quantgate_engine.clock import Clock
from quantgate_engine.config import EngineConfig
from quantgate_engine.engine import EngineCore
from quantgate_engine.executor.base import BlockCopy, Executor, SampledToken, ScheduledSequence
from quantgate_engine.executor.simulated import shape_of


class RecordingExecutor:
    """Implements `Executor` by another one; notes in `times` the shapes of steps, and how long block copies take."""

    def __init__(self, executor: Executor, clock: Clock, times: StepTimes) -> None:
        self.num_blocks = executor.num_blocks
        self.block_size = executor.block_size
        self.max_context_tokens = executor.max_context_tokens
        self.vocab_size = executor.vocab_size
        self.eos_token_ids = executor.eos_token_ids
        self.cache_identity = executor.cache_identity
        self._executor = executor
        self._clock = clock
        self._times = times

    def copy_blocks(self, copies: tuple[BlockCopy, ...]) -> None:
        started_ns = self._clock.now_ns()
        self._executor.copy_blocks(copies)
        self._times.swap_ns += self._clock.now_ns() - started_ns
        self._times.swapped_blocks += len(copies)

    def execute(self, sequences: tuple[ScheduledSequence, ...]) -> list[SampledToken | None]:
        self._times.shapes.append(shape_of(sequences))
        return self._executor.execute(sequences)


def complete(llm: LLM, config: EngineConfig, requests: Sequence[PlannedRequest]) -> StepTimes:
    """Runs `requests`, all given at once, to their ends on a new engine over the weights of `llm`.

    A step's time is the engine's own: scheduling is part of it.
    """
    times = StepTimes()
    executor = llm.engine_beside(config).executor
    core = EngineCore(RecordingExecutor(executor, llm.core.clock, times), config, llm.core.clock)
    for request in requests:
        params = SamplingParams(max_tokens=request.output_tokens, ignore_eos=True)
        core.add_request(request.request_id, request.prompt_token_ids, params)
    while core.has_work:
        core.step()
    times.step_ns = [step.duration_ns for step in core.take_steps() if step.prefill_tokens + step.decode_tokens]
    return times
