"""What the step loop hands to an executor, and what it gets back. Plain Python: no torch here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from quantgate_engine.sampling.token_history import TokenHistory
from quantgate_engine.sampling_params import SamplingParams


class ScheduledSequence(NamedTuple):
    """One request's share of a step: `token_ids` are the tokens to compute now, at `start_position` and after.

    `block_table` covers start_position + len(token_ids) slots. `sample` is true where this chunk ends at the last known
    token, so that the next one is to be drawn with `params`; it is the request's output token number `num_drawn`.
    `history` has the tokens that penalties depend on, for a request that asks for some.

    A named tuple, because each step makes one for each request, and a frozen dataclass takes three times as long.
    """

    request_id: str
    token_ids: tuple[int, ...]
    start_position: int
    block_table: tuple[int, ...]
    sample: bool
    params: SamplingParams
    num_drawn: int = 0
    history: TokenHistory | None = None

    @property
    def forced_token_id(self) -> int | None:
        """The token that this request must take next; None where it is free to draw one."""
        forced = self.params.forced_token_ids
        return forced[self.num_drawn] if forced else None


@dataclass(frozen=True, slots=True)
class SampledToken:
    """A drawn token; `logprob` and `top_logprobs` are set where the request asked for log-probabilities."""

    token_id: int
    logprob: float | None = None
    top_logprobs: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class NoToken:
    """In place of a token that could not be drawn: its request ends as failed, for the reason that `error` tells."""

    error: str


@dataclass(frozen=True, slots=True)
class TokenScore:
    """What the model thinks of a given token after those before it.

    logprob: natural logarithm; rank: 1 for the likeliest token of the vocabulary; top_logprobs: the most likely tokens
    there, best first.
    """

    token_id: int
    logprob: float
    rank: int
    top_logprobs: tuple[tuple[int, float], ...]


class CopyKind(Enum):
    """FORK: device to device. SWAP_OUT: device block to host slot. SWAP_IN: host slot to device block."""

    FORK = "fork"
    SWAP_OUT = "swap_out"
    SWAP_IN = "swap_in"


@dataclass(frozen=True, slots=True)
class BlockCopy:
    """One block to copy, all layers of it, on behalf of a request."""

    request_id: str
    kind: CopyKind
    source: int
    target: int


class Executor(Protocol):
    """Computes steps. `execute` returns one entry per sequence, None where nothing was to be sampled.

    Where one sequence alone went wrong, its entry is a `NoToken`; what is raised fails all of them.

    `copy_blocks` comes before the `execute` of the same step and is carried out strictly in order: a block that one
    copy has read may be the target of a later one. `cache_identity` names what the cached keys and values depend on
    beside the tokens: model, scheme, KV dtype.
    """

    num_blocks: int
    block_size: int
    max_context_tokens: int
    vocab_size: int
    eos_token_ids: tuple[int, ...]
    cache_identity: tuple[str, ...]

    def copy_blocks(self, copies: tuple[BlockCopy, ...]) -> None: ...

    def execute(self, sequences: tuple[ScheduledSequence, ...]) -> Sequence[SampledToken | NoToken | None]: ...
