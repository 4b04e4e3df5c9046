"""INT4 products of many rows in C++ against the definition of the stored form."""

from __future__ import annotations

import pytest
import torch
from tests.kernel_sets import kernel_set_or_skip

from quantgate_kernels.cpu.expanded_products import FUSED_ROWS
from quantgate_kernels.cpu.kernels import CpuKernels
from quantgate_kernels.int4_packing import pack_groups
from quantgate_kernels.reference.linear import dequantize, stored_form
from quantgate_kernels.types import Int4TiledWeight


@pytest.fixture(scope="module")
def cpu() -> CpuKernels:
    kernels = kernel_set_or_skip("cpu")
    assert isinstance(kernels, CpuKernels)
    return kernels


def tiled(outputs: int, inputs: int, group_size: int) -> Int4TiledWeight:
    """Every code occurs; scales of both signs and far apart."""
    generator = torch.Generator().manual_seed(outputs + inputs)
    codes = torch.randint(0, 16, (outputs, inputs), generator=generator, dtype=torch.uint8)
    scales = torch.randn(outputs, inputs // group_size, generator=generator).mul_(0.1).bfloat16()
    scales[0, 0], scales[-1, -1] = 1e-30, 1e4
    stored = stored_form(pack_groups(codes, scales, group_size))
    if not isinstance(stored, Int4TiledWeight):
        pytest.skip("torch has no tiled INT4 product here")
    return stored


@pytest.mark.parametrize(
    ("outputs", "inputs", "group_size"), [(64, 32, 32), (128, 64, 64), (192, 576, 64), (64, 256, 128)]
)
def test_expanded_weights_are_the_definition_rounded_once(
    cpu: CpuKernels, outputs: int, inputs: int, group_size: int
) -> None:
    """An identity as activations reads the expanded weight out of the product, bit for bit."""
    weight = tiled(outputs, inputs, group_size)
    identity = torch.eye(max(inputs, FUSED_ROWS + 1), inputs, dtype=torch.bfloat16)
    product = cpu.linear(identity, weight)[:inputs]
    assert torch.equal(product, dequantize(weight).bfloat16().t())
    assert "cpp" in cpu.paths[f"linear.{weight.label}"]


@pytest.mark.parametrize("rows", [FUSED_ROWS + 1, 100, 257])
def test_products_equal_float64_within_one_rounding(cpu: CpuKernels, rows: int) -> None:
    weight = tiled(192, 576, 64)
    x = torch.randn(rows, 576, generator=torch.Generator().manual_seed(rows)).bfloat16()
    expected = x.double() @ dequantize(weight).bfloat16().double().t()
    scale = x.double().abs() @ dequantize(weight).double().abs().t()
    error = (cpu.linear(x, weight).double() - expected).abs()
    assert (error <= expected.abs() * 2**-8 + scale * 2**-20).all()


def test_one_buffer_serves_layers_of_any_size(cpu: CpuKernels) -> None:
    large, small = tiled(192, 576, 64), tiled(64, 32, 32)
    x_large, x_small = torch.ones(50, 576).bfloat16(), torch.ones(50, 32).bfloat16()
    first = cpu.linear(x_small, small).clone()
    cpu.linear(x_large, large)
    assert torch.equal(cpu.linear(x_small, small), first)
