"""Norms against float64, with a residual and without one."""

from __future__ import annotations

import pytest
import torch

from quantgate_kernels.gpu.rms_norm import rms_norm

ROUNDING = {torch.float32: 1e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}
SMALLEST = 1e-7
"""float16 has no finer steps near zero."""
EPS = 1e-5


@pytest.mark.parametrize("dtype", list(ROUNDING))
@pytest.mark.parametrize("size", [64, 80, 128, 576, 4096, 5120])
@pytest.mark.parametrize("with_residual", [False, True], ids=["alone", "with a residual"])
def test_every_size(size: int, dtype: torch.dtype, with_residual: bool) -> None:
    generator = torch.Generator().manual_seed(size)
    x = torch.randn(11, size, generator=generator).to(dtype)
    residual = torch.randn(11, size, generator=generator).to(dtype) * 4 if with_residual else None
    weight = torch.rand(size, generator=generator).to(dtype)
    normalised, total = rms_norm(x, weight, EPS, residual)
    added = x if residual is None else x + residual
    assert torch.equal(total, added)
    wide = added.double()
    expected = wide / (wide.square().mean(-1, keepdim=True) + EPS).sqrt() * weight.double()
    torch.testing.assert_close(normalised.double(), expected, atol=SMALLEST, rtol=ROUNDING[dtype])


def test_eps_bounds_rows_of_almost_nothing() -> None:
    normalised, _ = rms_norm(torch.full((1, 64), 1e-8), torch.ones(64), EPS)
    torch.testing.assert_close(normalised, torch.full((1, 64), 1e-8 / EPS**0.5))


def test_a_row_does_not_know_its_batch() -> None:
    x = torch.randn(20, 128, generator=torch.Generator().manual_seed(0)).half()
    weight = torch.ones(128).half()
    together, _ = rms_norm(x, weight, EPS)
    assert torch.equal(torch.cat([rms_norm(row, weight, EPS)[0] for row in x.split(1)]), together)
