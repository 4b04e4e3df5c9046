"""Which kernel multiplies by which stored weight, and what the paths say of it."""

from __future__ import annotations

import pytest
import torch
from tests.gpu.float64_linear import assert_product
from torch import Tensor

from quantgate_kernels.gpu import products
from quantgate_kernels.gpu.kernels import DeterministicTritonKernels, TritonKernels
from quantgate_kernels.int4_packing import dequantize_groups, pack_groups
from quantgate_kernels.reference.kernels import ReferenceKernels
from quantgate_kernels.types import Int4GroupWeight, Int8ChannelWeight, Int8DynamicWeight
from quantgate_kernels.word_weight import WordWeight

INPUTS, OUTPUTS = 96, 40


def random_x(rows: int, inputs: int = INPUTS) -> Tensor:
    return torch.randn(rows, inputs, generator=torch.Generator().manual_seed(1)).half()


def int4(group: int) -> Int4GroupWeight:
    generator = torch.Generator().manual_seed(2)
    codes = torch.randint(0, 16, (OUTPUTS, INPUTS), generator=generator, dtype=torch.uint8)
    return pack_groups(codes, torch.rand(OUTPUTS, INPUTS // group, generator=generator).half(), group)


def int8_codes(inputs: int = INPUTS) -> Tensor:
    return torch.randint(-127, 128, (OUTPUTS, inputs), generator=torch.Generator().manual_seed(3)).to(torch.int8)


def test_int4_groups_are_multiplied_as_words() -> None:
    kernels, weight, x = TritonKernels(), int4(32), random_x(3)
    stored, bias = kernels.stored_form(weight, torch.float16), random_x(1, OUTPUTS)[0]
    assert isinstance(stored, WordWeight)
    product = kernels.linear(x, stored)
    assert_product(product, x, dequantize_groups(weight, torch.float16).double())
    assert torch.equal(kernels.linear(x, stored, bias), product + bias)
    assert kernels.paths == {"linear.int4-g32.rows<=1024": "triton"}


def test_int8_channels_are_multiplied_as_words() -> None:
    kernels, x, scales = TritonKernels(), random_x(3), torch.rand(OUTPUTS).half()
    stored = kernels.stored_form(Int8ChannelWeight(int8_codes(), scales), torch.float16)
    assert isinstance(stored, WordWeight)
    assert_product(kernels.linear(x, stored), x, int8_codes().double() * scales.double()[:, None])
    assert kernels.paths == {"linear.int8.rows<=1024": "triton"}


@pytest.mark.parametrize("inputs", [INPUTS, 32_769])
def test_codes_with_codes_are_those_of_the_reference_however_many_the_inputs(inputs: int) -> None:
    kernels, x = TritonKernels(), random_x(2, inputs)
    weight = Int8DynamicWeight(int8_codes(inputs), torch.rand(OUTPUTS))
    assert kernels.stored_form(weight, torch.float16) is weight
    assert torch.equal(kernels.linear(x, weight), ReferenceKernels().linear(x, weight))
    assert (kernels.paths["linear.int8-w8a8"] == "triton") == (inputs == INPUTS)


def test_many_rows_are_multiplied_by_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "MOST_ROWS_BY_WORDS", 4)
    kernels, weight, x = TritonKernels(), int4(32), random_x(5)
    stored = kernels.stored_form(weight, torch.float16)
    numbers = dequantize_groups(weight, torch.float16)
    assert torch.equal(kernels.linear(x, stored), torch.nn.functional.linear(x, numbers))
    assert kernels.paths == {"linear.int4-g32": "triton dequantize, torch.linear"}
    kernels.linear(x[:4], stored)
    assert kernels.paths["linear.int4-g32.rows<=4"] == "triton"


def test_the_deterministic_set_takes_one_way_for_any_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "MOST_ROWS_BY_WORDS", 4)
    kernels, x = DeterministicTritonKernels(), random_x(5)
    stored = kernels.stored_form(int4(32), torch.float16)
    together = kernels.linear(x, stored)
    assert torch.equal(kernels.linear(x[2:3], stored), together[2:3])
    assert kernels.paths == {"linear.int4-g32": "triton"}


@pytest.mark.parametrize(("group", "compute"), [(48, torch.float16), (32, torch.float32)])
def test_what_has_no_kernel_keeps_the_form_and_product_of_the_reference(group: int, compute: torch.dtype) -> None:
    kernels, weight, x = TritonKernels(), int4(group), random_x(3).to(compute)
    stored = kernels.stored_form(weight, compute)
    assert stored is weight
    expected = torch.nn.functional.linear(x, dequantize_groups(weight, compute))
    assert torch.equal(kernels.linear(x, stored), expected)
    assert kernels.paths == {f"linear.int4-g{group}": "dequantize groups, torch.linear"}
