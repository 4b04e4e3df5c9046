"""A decoder's layers as one call for each step, in place of a call for each operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from quantgate_kernels.types import AttentionBatch, KVLayer


class StepProgram(Protocol):
    """Made once for a model's weights. Not thread-safe: the executor that owns it makes one call at a time."""

    def hidden_states(
        self,
        token_ids: Tensor,
        cache: Sequence[KVLayer],
        batch: AttentionBatch,
        cos: Tensor,
        sin: Tensor,
        output_rows: Tensor | None = None,
    ) -> Tensor:
        """token_ids int64 [T], cos and sin float32 [T, head_dim] -> float32 [T, hidden] before the final norm.

        Writes the rows' keys and values to the cache.

        output_rows: int64 [R], ascending: only these rows are wanted, and the result is [R, hidden].
        """
        ...

    def logits(self, hidden: Tensor) -> Tensor:
        """hidden float32 [R, hidden] -> float32 [R, vocab], every one of them summed in float32 and not rounded."""
        ...

    def best_tokens(self, hidden: Tensor) -> Tensor:
        """hidden float32 [R, hidden] -> int64 [R]: the argmax of the logits, which are not written out."""
        ...
