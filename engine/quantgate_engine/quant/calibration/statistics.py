"""What is kept of a linear layer's inputs, however many rows it read."""

from __future__ import annotations

import torch
from torch import Tensor


class InputStatistics:
    """Sums over rows: of their outer products (the Hessian), of magnitudes, and the greatest of these."""

    def __init__(self, inputs: int) -> None:
        self.rows = 0
        self.hessian = torch.zeros(inputs, inputs, dtype=torch.float64)
        self.greatest = torch.zeros(inputs)
        self._magnitudes = torch.zeros(inputs, dtype=torch.float64)

    def add(self, rows: Tensor) -> None:
        """rows float32 [..., in]."""
        flat = rows.reshape(-1, rows.shape[-1])
        self.rows += len(flat)
        # One chunk's product in float32, the sum over chunks in float64.
        self.hessian += flat.t() @ flat
        magnitudes = flat.abs()
        self._magnitudes += magnitudes.sum(dim=0)
        torch.maximum(self.greatest, magnitudes.amax(dim=0), out=self.greatest)

    @property
    def mean_magnitude(self) -> Tensor:
        """float32 [in]."""
        return (self._magnitudes / max(self.rows, 1)).float()
