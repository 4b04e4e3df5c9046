"""What an executor computes a step's rows with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from quantgate_kernels.step_rows import StepRows
from quantgate_kernels.types import KVLayer


class StepDecoder(Protocol):
    """The model's decoder, or what stands between it and a GPU. See `Decoder` for what the methods give.

    Where hidden states lie is its own affair; logits and tokens lie in the host's memory. They stand until the next
    call: what is to be kept is copied.
    """

    def hidden_states(
        self, rows: StepRows, cache: Sequence[KVLayer], output_rows: Sequence[int] | None = None
    ) -> Tensor: ...

    def logits(self, hidden: Tensor, *, exact: bool = False) -> Tensor: ...

    def best_tokens(self, hidden: Tensor) -> Tensor: ...

    def next_tokens(
        self, rows: StepRows, cache: Sequence[KVLayer], output_rows: Sequence[int] | None = None
    ) -> list[int]: ...
