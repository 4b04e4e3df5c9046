"""What one step computes."""

from __future__ import annotations

from dataclasses import dataclass, field

from quantgate_engine.executor.base import BlockCopy, ScheduledSequence
from quantgate_engine.request import Request


def _tokens(sequences: tuple[ScheduledSequence, ...]) -> int:
    return sum(len(sequence.token_ids) for sequence in sequences)


@dataclass(frozen=True, slots=True)
class StepPlan:
    """The sequences of one step, decodes first; empty where there is nothing to run.

    `copies` come before them. `preemptions` requests gave way for it, and `cached_prompt_tokens` were taken over by
    those that it let in for the first time.
    """

    decode: tuple[ScheduledSequence, ...] = ()
    prefill: tuple[ScheduledSequence, ...] = ()
    copies: tuple[BlockCopy, ...] = ()
    preemptions: int = 0
    cached_prompt_tokens: int = 0

    @property
    def sequences(self) -> tuple[ScheduledSequence, ...]:
        return self.decode + self.prefill

    @property
    def has_work(self) -> bool:
        return bool(self.decode or self.prefill or self.copies)

    @property
    def decode_tokens(self) -> int:
        return _tokens(self.decode)

    @property
    def prefill_tokens(self) -> int:
        return _tokens(self.prefill)

    @property
    def context_tokens(self) -> int:
        """Tokens of all sequences of the step, those that were in the cache before included."""
        return sum(sequence.start_position + len(sequence.token_ids) for sequence in self.sequences)


@dataclass(slots=True)
class StepDraft:
    """A plan in the making; `budget` is what is left of the step's tokens."""

    budget: int
    decode: list[ScheduledSequence] = field(default_factory=list)
    prefill: list[ScheduledSequence] = field(default_factory=list)
    admitted: list[Request] = field(default_factory=list)
    preemptions: int = 0

    @property
    def is_empty(self) -> bool:
        return not self.decode and not self.prefill

    def finished(self, copies: tuple[BlockCopy, ...]) -> StepPlan:
        return StepPlan(
            decode=tuple(self.decode),
            prefill=tuple(self.prefill),
            copies=copies,
            preemptions=self.preemptions,
            cached_prompt_tokens=sum(
                request.cached_prompt_tokens for request in self.admitted if not request.preemptions
            ),
        )
