"""What one step computes."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate_engine.executor.base import ScheduledSequence


def _tokens(sequences: tuple[ScheduledSequence, ...]) -> int:
    return sum(len(sequence.token_ids) for sequence in sequences)


@dataclass(frozen=True, slots=True)
class StepPlan:
    """The sequences of one step, decodes first; empty where there is nothing to run."""

    decode: tuple[ScheduledSequence, ...]
    prefill: tuple[ScheduledSequence, ...]

    @property
    def sequences(self) -> tuple[ScheduledSequence, ...]:
        return self.decode + self.prefill

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
