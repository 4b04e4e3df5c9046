"""What the layers of one step share, worked out once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import torch

from quantgate_kernels.types import AttentionBatch

Plan = TypeVar("Plan")


class StepPlans(Generic[Plan]):
    """All layers of a step pass the same batch object, so that only the first of those with like windows plans.

    make: plans for a batch, the dtype of its queries, and the window, which is None where it hides nothing.
    """

    def __init__(self, make: Callable[[AttentionBatch, torch.dtype, int | None], Plan]) -> None:
        self._make = make
        self._batch: AttentionBatch | None = None
        self._plans: dict[tuple[torch.dtype, int | None], Plan] = {}

    def of(self, batch: AttentionBatch, dtype: torch.dtype, window: int | None) -> Plan:
        if batch is not self._batch:
            self._batch, self._plans = batch, {}
        if window is not None and window >= max(batch.context_lens_host):
            window = None
        key = (dtype, window)
        if key not in self._plans:
            self._plans[key] = self._make(batch, dtype, window)
        return self._plans[key]
