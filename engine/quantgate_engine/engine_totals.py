"""What an engine has done since it was made: the sums of its step records, which are never dropped."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate_engine.step_record import StepRecord


@dataclass(slots=True)
class EngineTotals:
    """Counters that only grow; the names are those of the step records."""

    steps: int = 0
    prefill_tokens: int = 0
    decode_tokens: int = 0
    recomputed_tokens: int = 0
    cached_prompt_tokens: int = 0
    preemption_count: int = 0
    request_abort_count: int = 0
    rejected_count: int = 0
    oom_count: int = 0

    @property
    def recompute_tax(self) -> float:
        """Tokens computed again after preemption / all tokens computed (0 where none was)."""
        computed = self.prefill_tokens + self.decode_tokens
        return self.recomputed_tokens / computed if computed else 0.0

    def add(self, record: StepRecord) -> None:
        self.steps += 1
        self.prefill_tokens += record.prefill_tokens
        self.decode_tokens += record.decode_tokens
        self.recomputed_tokens += record.recomputed_tokens
        self.cached_prompt_tokens += record.cached_prompt_tokens
        self.preemption_count += record.preemption_count
        self.request_abort_count += record.request_abort_count
        self.rejected_count += record.rejected_count
        self.oom_count += record.oom_count
