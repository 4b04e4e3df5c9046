"""What a streaming front drives: one engine, or several behind a router."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from quantgate_engine.kv.holding import KVHolding
from quantgate_engine.pool_state import PoolState
from quantgate_engine.request import AbortCause, Request
from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.step_record import StepRecord
from quantgate_engine.step_result import StepLoad, StepResult


@runtime_checkable
class SteppedEngine(Protocol):
    """Requests in, steps one at a time, what they brought out. Methods mean what EngineCore says of them.

    `step` and `expire_sessions` belong to the thread that has made its claim; `add_request`, `abort`, `abort_all`,
    `finish` and `shut_down` may be called from any thread.
    """

    @property
    def has_work(self) -> bool: ...

    @property
    def load(self) -> StepLoad: ...

    @property
    def num_kv_blocks(self) -> int: ...

    @property
    def max_active_requests(self) -> int: ...

    @property
    def slo_classes(self) -> tuple[str, ...]: ...

    def kv_holdings(self) -> list[KVHolding]: ...

    def kv_greatest_holders(self) -> list[KVHolding]: ...

    @property
    def aborts_by_cause(self) -> Mapping[AbortCause, int]: ...

    def claim(self) -> None: ...

    def relinquish(self) -> None: ...

    def reopen(self) -> None: ...

    def forget(self) -> None: ...

    def shut_down(self, *, drain: bool) -> None: ...

    def add_request(
        self, request_id: str, prompt_token_ids: tuple[int, ...], params: SamplingParams, terms: RequestTerms
    ) -> Request: ...

    def abort(self, request_id: str, cause: AbortCause) -> None: ...

    def abort_all(self, cause: AbortCause) -> None: ...

    def finish(self, request_id: str) -> None: ...

    def refusal(
        self, request_id: str, prompt_token_ids: tuple[int, ...], params: SamplingParams, terms: RequestTerms
    ) -> str | None: ...

    def expire_sessions(self) -> float | None: ...

    @property
    def pool_states(self) -> Mapping[str, PoolState]: ...

    @property
    def degrades(self) -> bool: ...

    @property
    def max_sequence_tokens(self) -> int: ...

    def output_room(self, prompt_token_ids: tuple[int, ...], params: SamplingParams, terms: RequestTerms) -> int: ...

    def step(self) -> StepResult: ...

    def take_steps(self) -> list[StepRecord]: ...
