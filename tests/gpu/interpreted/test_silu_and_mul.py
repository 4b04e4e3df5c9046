"""The gate against float64."""

from __future__ import annotations

import pytest
import torch

from quantgate_kernels.gpu.silu_and_mul import silu_and_mul

ROUNDING = {torch.float32: 1e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}


@pytest.mark.parametrize("dtype", list(ROUNDING))
@pytest.mark.parametrize("ffn", [1, 96, 1024, 1025, 1536])
def test_every_width(ffn: int, dtype: torch.dtype) -> None:
    gate_up = (torch.randn(3, 2 * ffn, generator=torch.Generator().manual_seed(ffn)) * 3).to(dtype)
    gate, up = gate_up.double().chunk(2, dim=-1)
    expected = gate / (1 + (-gate).exp()) * up
    near = {"atol": ROUNDING[dtype] * 1e-2, "rtol": ROUNDING[dtype]}
    torch.testing.assert_close(silu_and_mul(gate_up).double(), expected, **near)


@pytest.mark.filterwarnings("ignore:overflow encountered in exp:RuntimeWarning")
def test_gates_that_are_far_from_zero() -> None:
    """An infinite power, which numpy warns of, is the right one: it makes the gate zero."""
    gate_up = torch.tensor([[-200.0, 200.0, 0.0, 2.0, 2.0, 2.0]])
    torch.testing.assert_close(silu_and_mul(gate_up), torch.tensor([[0.0, 400.0, 0.0]]))
