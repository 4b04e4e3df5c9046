"""A decoder's layers as one call for each step, in place of a call for each operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from quantgate_kernels.step_rows import StepRows
from quantgate_kernels.types import KVLayer

NO_BEST_TOKEN = -1
"""In place of the best token of a row whose logits, or whose squares before the final norm, overflowed."""


class StepProgram(Protocol):
    """Made once for a model's weights. Not thread-safe: the executor that owns it makes one call at a time."""

    def hidden_states(
        self, rows: StepRows, cache: Sequence[KVLayer], output_rows: Sequence[int] | None = None
    ) -> Tensor:
        """-> float32 [T, hidden] before the final norm. Writes the rows' keys and values to the cache.

        output_rows: R of them, ascending: only these rows are wanted, and the result is [R, hidden].
        """
        ...

    def next_tokens(
        self, rows: StepRows, cache: Sequence[KVLayer], output_rows: Sequence[int] | None = None
    ) -> list[int]:
        """The `best_tokens` of the `hidden_states`, in one call."""
        ...

    def logits(self, hidden: Tensor) -> Tensor:
        """hidden float32 [R, hidden] -> float32 [R, vocab], every one of them summed in float32 and not rounded."""
        ...

    def best_tokens(self, hidden: Tensor) -> Tensor:
        """hidden float32 [R, hidden] -> int64 [R]: the argmax of the logits, never written out; or NO_BEST_TOKEN."""
        ...
