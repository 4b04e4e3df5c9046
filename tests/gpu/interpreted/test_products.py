"""Which kernel multiplies by which stored weight, and what the paths say of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.gpu.float64_linear import assert_product
from tests.gpu.word_forms import group_weight
from torch import Tensor

from quantgate_kernels.gpu import products
from quantgate_kernels.gpu.kernels import DeterministicTritonKernels, TritonKernels
from quantgate_kernels.int4_packing import dequantize_groups, pack_groups
from quantgate_kernels.reference import linear as reference
from quantgate_kernels.reference.kernels import ReferenceKernels
from quantgate_kernels.types import Int4GroupWeight, Int8ChannelWeight, Int8DynamicWeight, Int8GroupWeight
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


def any_form(bits: int, group: int, scales: torch.dtype) -> Int4GroupWeight | Int8GroupWeight:
    generator = torch.Generator().manual_seed(4)
    codes = torch.randint(0, 1 << bits, (OUTPUTS, INPUTS), generator=generator)
    groups = (OUTPUTS, INPUTS // group)
    zeros = torch.randint(0, 1 << bits, groups, generator=generator)
    return group_weight(bits, codes, torch.rand(groups, generator=generator).to(scales), zeros)


@pytest.mark.parametrize("rows", [4, 5])
@pytest.mark.parametrize("scales", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("bits", "group", "label"), [
    (4, 32, "int4-g32-asym"), (4, INPUTS, "int4-asym"), (8, 32, "int8-g32-asym"), (8, INPUTS, "int8-asym"),
])  # fmt: skip
def test_groups_with_zeros_and_scales_of_any_16_bits_are_multiplied_as_words(
    bits: int, group: int, label: str, scales: torch.dtype, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "MOST_ROWS_BY_WORDS", 4)
    kernels, weight, x = TritonKernels(), any_form(bits, group, scales), random_x(rows)
    stored = kernels.stored_form(weight, torch.float16)
    assert isinstance(stored, WordWeight)
    product = kernels.linear(x, stored)
    if rows > 4:
        assert torch.equal(product, ReferenceKernels().linear(x, weight))
    elif group < INPUTS:
        assert_product(product, x, reference.dequantize(weight).half().double())
    else:
        assert_product(product, x, reference.dequantize(weight).double())
    few, many = (f"linear.{label}.rows<=4", "triton"), (f"linear.{label}", "triton dequantize, torch.linear")
    assert kernels.paths == dict([few if rows == 4 else many])


def test_scales_are_kept_as_stored_unless_another_dtype_holds_them_all() -> None:
    in_digits = any_form(4, 32, torch.bfloat16)
    assert words_scales(in_digits, torch.float16).dtype == torch.float16
    assert torch.equal(words_scales(in_digits, torch.float16).float(), in_digits.scales.t().float())
    out_of_digits = any_form(4, 32, torch.float16)
    assert torch.equal(words_scales(out_of_digits, torch.bfloat16), out_of_digits.scales.t())
    for out_of_range in (1e-9, 1e6):
        scales = in_digits.scales.clone()
        scales[1, 1] = out_of_range
        assert torch.equal(words_scales(replace(in_digits, scales=scales), torch.float16), scales.t())


def words_scales(weight: Int4GroupWeight | Int8GroupWeight, compute: torch.dtype) -> Tensor:
    words = products.words_of(weight, compute)
    assert words is not None
    return words.scales


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize(("group", "scales"), [(48, torch.float16), (32, torch.float32)])
def test_zeros_without_a_kernel_keep_the_form_and_product_of_the_reference(
    bits: int, group: int, scales: torch.dtype
) -> None:
    kernels, weight, x = TritonKernels(), any_form(bits, group, scales), random_x(3)
    assert kernels.stored_form(weight, torch.float16) is weight
    assert torch.equal(kernels.linear(x, weight), ReferenceKernels().linear(x, weight))
    assert kernels.paths == {f"linear.int{bits}-g{group}-asym": "dequantize groups, torch.linear"}


@pytest.mark.parametrize(("group", "compute"), [(48, torch.float16), (32, torch.float32)])
def test_what_has_no_kernel_keeps_the_form_and_product_of_the_reference(group: int, compute: torch.dtype) -> None:
    kernels, weight, x = TritonKernels(), int4(group), random_x(3).to(compute)
    stored = kernels.stored_form(weight, compute)
    assert stored is weight
    expected = torch.nn.functional.linear(x, dequantize_groups(weight, compute))
    assert torch.equal(kernels.linear(x, stored), expected)
    assert kernels.paths == {f"linear.int4-g{group}": "dequantize groups, torch.linear"}
