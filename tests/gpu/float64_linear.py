"""Products in float64, and how near to them sums in float32 that are rounded once must be."""

from __future__ import annotations

import torch
from torch import Tensor

FLOAT32_SUMS = 2e-6
"""Of the magnitudes that are summed; 16 times float32's rounding."""


def assert_product(product: Tensor, x: Tensor, weight: Tensor) -> None:
    """product [T, out] of x [T, in] and weight float64 [out, in]: within half a step of its dtype and the sums'."""
    exact = x.double() @ weight.t()
    magnitudes = x.double().abs() @ weight.abs().t()
    number = torch.finfo(product.dtype)
    allowed = exact.abs() * number.eps * 0.51 + magnitudes * FLOAT32_SUMS + number.smallest_normal * number.eps
    wrong = (product.double() - exact).abs() > allowed
    assert not wrong.any(), f"{int(wrong.sum())} of {wrong.numel()} are off, first {wrong.nonzero()[0].tolist()}"
