"""Rows that are quantized as they come, and their products with int8 codes: what the reference defines, to the bit."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from quantgate_kernels.gpu.linear_int8 import linear_int8
from quantgate_kernels.gpu.quantize_tokens import quantize_tokens
from quantgate_kernels.types import Int8DynamicWeight

ONE_SPLIT, MANY_SPLITS = 1, 1000
"""Processors of the device."""


def random_x(rows: int, inputs: int, dtype: torch.dtype) -> Tensor:
    x = torch.randn(rows, inputs, generator=torch.Generator().manual_seed(1))
    return (x * torch.logspace(-4, 0, rows)[:, None]).to(dtype)


def weight_of(outputs: int, inputs: int) -> Int8DynamicWeight:
    generator = torch.Generator().manual_seed(2)
    codes = torch.randint(-127, 128, (outputs, inputs), generator=generator, dtype=torch.int8)
    return Int8DynamicWeight(codes, torch.rand(outputs, generator=generator) * 0.1)


def defined_codes(x: Tensor) -> tuple[Tensor, Tensor]:
    """By exact quotients in float64 of the scale in float32, ties to even; of rows that are finite."""
    scales = (x.double().abs().amax(1) / 127).float()
    quotients = (x.double() / scales.double()[:, None]).float().double()
    codes = quotients.round().clamp(-127, 127)
    return codes.nan_to_num(0.0).to(torch.int8), scales


def defined_product(x: Tensor, weight: Int8DynamicWeight) -> Tensor:
    codes, row_scales = defined_codes(x)
    sums = codes.to(torch.int64) @ weight.codes.to(torch.int64).t()
    return (sums.float() * (row_scales[:, None] * weight.scales)).to(x.dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("inputs", [1, 7, 64, 576])
def test_rows_as_codes(inputs: int, dtype: torch.dtype) -> None:
    x = random_x(4, inputs, dtype)
    x[2] = 0
    for found, defined in zip(quantize_tokens(x), defined_codes(x), strict=True):
        assert torch.equal(found, defined)


def test_ties_go_to_even_codes() -> None:
    x = torch.tensor([[127.0, 0.5, 1.5, 2.5, -0.5, -1.5, -126.5]], dtype=torch.float16)
    codes, scales = quantize_tokens(x)
    assert codes.tolist() == [[127, 0, 2, 2, 0, -2, -126]]
    assert scales.tolist() == [1.0]


@pytest.mark.parametrize("largest", [6e-8, 1e-5, 1000.0])
def test_rows_of_the_smallest_and_of_large_numbers(largest: float) -> None:
    x = torch.full((1, 40), largest, dtype=torch.float16)
    x[0, ::3] *= -1
    weight = weight_of(5, 40)
    codes, _ = quantize_tokens(x)
    assert (codes.abs() == 127).all()
    assert torch.equal(linear_int8(x, weight, "sm90", ONE_SPLIT), defined_product(x, weight))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("inputs", [33, 256, 300])
@pytest.mark.parametrize("rows", [1, 3, 16, 17, 70])
def test_products(rows: int, inputs: int, dtype: torch.dtype) -> None:
    x, weight = random_x(rows, inputs, dtype), weight_of(70, inputs)
    assert torch.equal(linear_int8(x, weight, "sm90", ONE_SPLIT), defined_product(x, weight))


@pytest.mark.parametrize("architecture", ["sm80", "gfx942"])
def test_tiles_of_other_architectures(architecture: str) -> None:
    x, weight = random_x(20, 300, torch.float16), weight_of(70, 300)
    assert torch.equal(linear_int8(x, weight, architecture, ONE_SPLIT), defined_product(x, weight))


@pytest.mark.parametrize("rows", [1, 20])
def test_splits_change_no_bit(rows: int) -> None:
    """The last split is not full, and neither is its last tile."""
    x, weight = random_x(rows, 2500, torch.bfloat16), weight_of(20, 2500)
    assert torch.equal(linear_int8(x, weight, "sm90", MANY_SPLITS), defined_product(x, weight))


def test_the_largest_codes_are_summed_exactly() -> None:
    inputs = 1100
    x = torch.ones(2, inputs, dtype=torch.float32)
    x[1] = -1
    weight = Int8DynamicWeight(torch.full((3, inputs), 127, dtype=torch.int8), torch.ones(3))
    weight.codes[1, 0] = 126
    weight.codes[2] = -127
    product = linear_int8(x, weight, "sm90", ONE_SPLIT)
    assert torch.equal(product, defined_product(x, weight))
    assert product[0, 0] != product[0, 1]


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_a_broken_row_is_broken_alone(broken: float) -> None:
    x, weight = random_x(3, 64, torch.float16), weight_of(5, 64)
    clean = linear_int8(x, weight, "sm90", ONE_SPLIT)
    x[1, 3] = broken
    product = linear_int8(x, weight, "sm90", ONE_SPLIT)
    assert product[1].isnan().all()
    assert torch.equal(product[[0, 2]], clean[[0, 2]])


def test_sums_that_could_overflow_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fit into 32 bits"):
        linear_int8(torch.zeros(1, 133_145), weight_of(1, 133_145), "sm90", ONE_SPLIT)


def test_rows_that_no_program_holds_are_refused() -> None:
    with pytest.raises(ValueError, match="row of 32769"):
        quantize_tokens(torch.zeros(1, 32_769))
