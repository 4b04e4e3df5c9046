"""A request's life: its states, the table of moves between them, and what it has cost so far. Plain Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from quantgate_engine.executor.base import SampledToken
from quantgate_engine.sampling_params import SamplingParams


class RequestState(Enum):
    """Where a request stands with the scheduler. How far its reader is, is the delivery's state, not this one."""

    WAITING = "waiting"
    PREFILL = "prefill"
    DECODING = "decoding"
    FINISHED = "finished"
    ABORTED = "aborted"
    REJECTED = "rejected"


class AbortCause(Enum):
    """Why a request was given up."""

    TIMEOUT = "timeout"
    DISCONNECT = "disconnect"
    CANCELLED = "cancelled"
    BACKPRESSURE = "backpressure"
    SHUTDOWN = "shutdown"
    ERROR = "error"


class FinishReason(Enum):
    """Why a finished request has no more tokens: it drew a stop token, or it reached its `max_tokens`."""

    STOP = "stop"
    LENGTH = "length"


TRANSITIONS: Mapping[RequestState, frozenset[RequestState]] = MappingProxyType(
    {
        RequestState.WAITING: frozenset({RequestState.PREFILL, RequestState.ABORTED, RequestState.REJECTED}),
        RequestState.PREFILL: frozenset({RequestState.DECODING, RequestState.ABORTED}),
        RequestState.DECODING: frozenset({RequestState.FINISHED, RequestState.ABORTED}),
        RequestState.FINISHED: frozenset(),
        RequestState.ABORTED: frozenset(),
        RequestState.REJECTED: frozenset(),
    }
)


class IllegalTransitionError(RuntimeError):
    """A request was moved along an arrow that the table does not have: a defect of the engine, never of the user."""


@dataclass(slots=True, eq=False)
class Request:
    """One request inside the engine. Times are nanoseconds of the engine's clock, None until they happen.

    `num_computed_tokens` counts the tokens whose keys and values lie in the cache. `times_overtaken` counts the later
    requests that were admitted while this one was passed over.
    """

    request_id: str
    prompt_token_ids: tuple[int, ...]
    params: SamplingParams
    arrived_ns: int
    state: RequestState = RequestState.WAITING
    output: list[SampledToken] = field(default_factory=list)
    num_computed_tokens: int = 0
    times_overtaken: int = 0
    admitted_ns: int | None = None
    first_token_ns: int | None = None
    finished_ns: int | None = None
    finish_reason: FinishReason | None = None
    abort_cause: AbortCause | None = None
    error: str | None = None
    kv_peak_blocks: int = 0
    kv_block_seconds: float = 0.0

    def transition(self, target: RequestState) -> None:
        """Moves to `target`; raises IllegalTransitionError where the table has no such arrow."""
        if target not in TRANSITIONS[self.state]:
            raise IllegalTransitionError(
                f"request {self.request_id} cannot go from {self.state.value} to {target.value}"
            )
        self.state = target

    @property
    def num_tokens(self) -> int:
        """Tokens known so far: the prompt and what was drawn."""
        return len(self.prompt_token_ids) + len(self.output)

    @property
    def num_uncomputed_tokens(self) -> int:
        return self.num_tokens - self.num_computed_tokens

    @property
    def max_stored_tokens(self) -> int:
        """Cache slots that the whole sequence can come to need: its last token is never fed back, so it takes none."""
        return len(self.prompt_token_ids) + self.params.max_tokens - 1

    @property
    def output_token_ids(self) -> tuple[int, ...]:
        return tuple(token.token_id for token in self.output)

    def next_token_ids(self, count: int) -> tuple[int, ...]:
        """The first `count` known tokens that are not computed yet."""
        start, stop, prompt = self.num_computed_tokens, self.num_computed_tokens + count, len(self.prompt_token_ids)
        drawn = self.output[max(0, start - prompt) : max(0, stop - prompt)]
        return self.prompt_token_ids[start:stop] + tuple(token.token_id for token in drawn)
