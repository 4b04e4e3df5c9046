"""A request's life: its states, the table of moves between them, and what it has cost so far. Plain Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING

from quantgate_engine.executor.base import SampledToken
from quantgate_engine.request_terms import DEFAULT_TERMS, RequestTerms
from quantgate_engine.sampling.token_history import TokenHistory
from quantgate_engine.sampling_params import SamplingParams

if TYPE_CHECKING:
    from quantgate_engine.kv.prefix_chain import PrefixChain


class RequestState(Enum):
    """Where a request stands with the scheduler. How far its reader is, is the delivery's state, not this one."""

    WAITING = "waiting"
    PREFILL = "prefill"
    DECODING = "decoding"
    FINISHED = "finished"
    ABORTED = "aborted"
    REJECTED = "rejected"

    # A member is equal to itself alone. Enum's own hash is a Python function, and a step looks up dozens of states.
    __hash__ = object.__hash__


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


# A preempted request may have all that its reader wants (a stop string came up meanwhile): it finishes as it stands.
TRANSITIONS: Mapping[RequestState, frozenset[RequestState]] = MappingProxyType(
    {
        RequestState.WAITING: frozenset(
            {RequestState.PREFILL, RequestState.FINISHED, RequestState.ABORTED, RequestState.REJECTED}
        ),
        RequestState.PREFILL: frozenset(
            {RequestState.DECODING, RequestState.WAITING, RequestState.FINISHED, RequestState.ABORTED}
        ),
        RequestState.DECODING: frozenset({RequestState.FINISHED, RequestState.WAITING, RequestState.ABORTED}),
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

    `num_computed_tokens` counts the tokens whose keys and values lie in the cache (or, after a swap, on the host), and
    `lost_tokens` how many there were when they were last dropped: what is computed below that mark is computed again,
    and is the recompute tax. `end_token_ids` are those that end it when one of them is drawn.
    `rank` is its place in the order of arrival, which it keeps when it is preempted; `admission_number` its place in
    the order of (latest) admissions. `times_overtaken` counts the later requests that were admitted while this one was
    passed over. `degraded` tells in one sentence what was cut so that it could run. `history` is there where its
    penalties depend on earlier tokens. `prompt_range` is the lowest and the highest token id of the
    prompt that it came with.
    """

    request_id: str
    prompt_token_ids: tuple[int, ...]
    params: SamplingParams
    arrived_ns: int
    terms: RequestTerms = DEFAULT_TERMS
    rank: int = 0
    end_token_ids: frozenset[int] = frozenset()
    state: RequestState = RequestState.WAITING
    output: list[SampledToken] = field(default_factory=list)
    prefix_chain: PrefixChain | None = None
    num_computed_tokens: int = 0
    lost_tokens: int = 0
    admission_number: int = 0
    times_overtaken: int = 0
    degraded: str | None = None
    preemptions: int = 0
    recomputed_tokens: int = 0
    cached_prompt_tokens: int = 0
    admitted_ns: int | None = None
    first_token_ns: int | None = None
    finished_ns: int | None = None
    finish_reason: FinishReason | None = None
    abort_cause: AbortCause | None = None
    error: str | None = None
    kv_peak_blocks: int = 0
    kv_block_seconds: float = 0.0
    history: TokenHistory | None = field(init=False, default=None)
    prompt_range: tuple[int, int] = field(init=False, default=(0, 0))

    def __post_init__(self) -> None:
        # Here and not where it is judged: that is in a step, which all other requests wait for.
        if self.prompt_token_ids:
            self.prompt_range = min(self.prompt_token_ids), max(self.prompt_token_ids)
        if self.params.penalises:
            self.history = TokenHistory(self)

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
        return self.tokens_between(self.num_computed_tokens, self.num_computed_tokens + count)

    def tokens_between(self, start: int, stop: int) -> tuple[int, ...]:
        """Known tokens from position `start` to the one before `stop`."""
        prompt = len(self.prompt_token_ids)
        if stop <= prompt:
            return self.prompt_token_ids[start:stop]
        if start >= prompt:
            return tuple([token.token_id for token in self.output[start - prompt : stop - prompt]])
        drawn = self.output[: stop - prompt]
        return self.prompt_token_ids[start:stop] + tuple([token.token_id for token in drawn])

    def advance(self, num_tokens: int) -> int:
        """Counts tokens as computed; returns how many of them had been computed before and were lost."""
        before = self.num_computed_tokens
        self.num_computed_tokens = now = before + num_tokens
        if before >= self.lost_tokens:
            return 0
        again = min(now, self.lost_tokens) - before
        self.recomputed_tokens += again
        return again

    def lose_computed(self) -> None:
        """Its part of the cache is gone: everything has to be computed again."""
        self.lost_tokens = max(self.lost_tokens, self.num_computed_tokens)
        self.num_computed_tokens = 0
