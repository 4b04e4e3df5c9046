"""Engines without a model for the tests of this area: the real scheduler and books over the simulated executor."""

from __future__ import annotations

from collections.abc import Callable

from quantgate_engine.clock import VirtualClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.engine import EngineCore
from quantgate_engine.executor.base import SampledToken, ScheduledSequence
from quantgate_engine.executor.simulated import SimulatedExecutor, StepCosts, simulated_token
from quantgate_engine.request import Request

VOCABULARY = 1000

Hook = Callable[[tuple[ScheduledSequence, ...]], None]


class RecordingExecutor(SimulatedExecutor):
    """Keeps what each step was given, and calls `hook` in the middle of the step."""

    def __init__(self, clock: VirtualClock, num_blocks: int, block_size: int, eos_token_ids: tuple[int, ...]) -> None:
        super().__init__(
            clock,
            StepCosts(base_ns=1000, per_prefill_token_ns=10, per_decode_request_ns=100),
            num_blocks=num_blocks,
            block_size=block_size,
            max_context_tokens=512,
            vocab_size=VOCABULARY,
            eos_token_ids=eos_token_ids,
        )
        self.steps: list[tuple[ScheduledSequence, ...]] = []
        self.hook: Hook | None = None
        self.hook_ran = False

    def execute(self, sequences: tuple[ScheduledSequence, ...]) -> list[SampledToken | None]:
        self.steps.append(sequences)
        if self.hook is not None:
            self.hook_ran = True
            self.hook(sequences)
        return super().execute(sequences)


class Simulation:
    """An EngineCore with its executor and clock in reach."""

    def __init__(
        self,
        *,
        num_blocks: int = 64,
        block_size: int = 4,
        max_active_requests: int = 4,
        max_step_tokens: int = 16,
        max_overtakes: int = 3,
        eos_token_ids: tuple[int, ...] = (),
    ) -> None:
        self.config = EngineConfig(
            max_active_requests=max_active_requests,
            max_step_tokens=max_step_tokens,
            block_size=block_size,
            max_overtakes=max_overtakes,
        )
        self.clock = VirtualClock()
        self.executor = RecordingExecutor(self.clock, num_blocks, block_size, eos_token_ids)
        self.core = EngineCore(self.executor, self.config, self.clock)

    def run(self, max_steps: int = 10_000) -> list[Request]:
        """Steps until nothing is left, checking the books after each step; returns the requests as they ended."""
        ended: list[Request] = []
        for _ in range(max_steps):
            if not self.core.has_work:
                return ended
            ended.extend(self.core.step().ended)
            self.core.check_integrity()
        raise AssertionError(f"the engine still had work after {max_steps} steps")


def prompt(length: int, first: int = 1) -> tuple[int, ...]:
    return tuple((first + 13 * i) % VOCABULARY for i in range(length))


def expected_tokens(prompt_token_ids: tuple[int, ...], count: int, seed: int = 0) -> tuple[int, ...]:
    """What a request must produce, computed without the engine."""
    tokens = list(prompt_token_ids)
    for _ in range(count):
        tokens.append(simulated_token(tokens[-1], len(tokens), VOCABULARY, seed))
    return tuple(tokens[len(prompt_token_ids) :])
