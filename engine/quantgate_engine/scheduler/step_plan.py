"""What one step computes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from quantgate_engine.executor.base import BlockCopy, ScheduledSequence
from quantgate_engine.request import Request

# What the class itself does when it is called, without a Python function in between: each decode of each step pays it.
_sequence = partial(tuple.__new__, ScheduledSequence)


@dataclass(frozen=True, slots=True)
class StepPlan:
    """The sequences of one step, decodes first, and the request of each; empty where there is nothing to run.

    The first `num_decodes` of them take one token each, the others are prefill. `context_tokens` are the tokens of all
    of them, those that were in the cache before included. `copies` come before them. `preemptions` requests gave way
    for it, and `cached_prompt_tokens` were taken over by those that it let in for the first time.
    """

    requests: tuple[Request, ...] = ()
    sequences: tuple[ScheduledSequence, ...] = ()
    num_decodes: int = 0
    prefill_tokens: int = 0
    context_tokens: int = 0
    copies: tuple[BlockCopy, ...] = ()
    preemptions: int = 0
    cached_prompt_tokens: int = 0

    @property
    def has_work(self) -> bool:
        return bool(self.sequences or self.copies)

    @property
    def num_prefills(self) -> int:
        return len(self.sequences) - self.num_decodes

    @property
    def num_tokens(self) -> int:
        """Tokens that the step computes."""
        return self.num_decodes + self.prefill_tokens


@dataclass(slots=True)
class StepDraft:
    """A plan in the making; `budget` is what is left of the step's tokens.

    `decode` has the block table of each request, and `prefill` the sequence, in their order.
    """

    budget: int
    decode: dict[Request, tuple[int, ...]] = field(default_factory=dict)
    prefill: dict[Request, ScheduledSequence] = field(default_factory=dict)
    admitted: list[Request] = field(default_factory=list)
    prefill_tokens: int = 0
    prefill_context_tokens: int = 0
    preemptions: int = 0

    @property
    def is_empty(self) -> bool:
        return not self.decode and not self.prefill

    def withdraw(self, request: Request) -> None:
        """Takes back a request's decode, if it is here: the request has given way."""
        self.decode.pop(request, None)

    def add_prefill(self, request: Request, num_tokens: int, block_table: tuple[int, ...]) -> None:
        """The next `num_tokens` of a request's known tokens."""
        computed = request.num_computed_tokens
        self.prefill[request] = ScheduledSequence(
            request_id=request.request_id,
            token_ids=request.next_token_ids(num_tokens),
            start_position=computed,
            block_table=block_table,
            sample=computed + num_tokens == request.num_tokens,
            params=request.params,
            num_drawn=len(request.output),
            history=request.history,
        )
        self.budget -= num_tokens
        self.prefill_tokens += num_tokens
        self.prefill_context_tokens += computed + num_tokens

    def _decodes(self) -> list[ScheduledSequence]:
        """Of each decoding request the one token that is not computed yet: the last that was drawn."""
        return [
            _sequence(
                (
                    request.request_id,
                    (request.output[-1].token_id,),
                    request.num_computed_tokens,
                    block_table,
                    True,
                    request.params,
                    len(request.output),
                    request.history,
                )
            )
            for request, block_table in self.decode.items()
        ]

    def finished(self, copies: tuple[BlockCopy, ...]) -> StepPlan:
        decoded_context = sum([request.num_computed_tokens for request in self.decode]) + len(self.decode)
        return StepPlan(
            requests=(*self.decode, *self.prefill),
            sequences=(*self._decodes(), *self.prefill.values()),
            num_decodes=len(self.decode),
            prefill_tokens=self.prefill_tokens,
            context_tokens=decoded_context + self.prefill_context_tokens,
            copies=copies,
            preemptions=self.preemptions,
            cached_prompt_tokens=sum(
                request.cached_prompt_tokens for request in self.admitted if not request.preemptions
            ),
        )
