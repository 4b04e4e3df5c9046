"""Words of codes with zeros, groups of 8 bits, whole rows, and scales of another dtype than the rows they meet."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.gpu.float64_linear import assert_product
from tests.gpu.word_forms import Formed, formed, random_form
from torch import Tensor

from quantgate_kernels.gpu.code_words import words_of_int8_groups
from quantgate_kernels.gpu.dequantize import dequantize
from quantgate_kernels.gpu.linear_words import linear_words
from quantgate_kernels.types import Int8GroupWeight, stored_bytes

ONE_SPLIT, MANY_SPLITS = 1, 1000
"""Processors of the device."""

HALF, BRAIN = torch.float16, torch.bfloat16
OUTPUTS = 70

FORMS = [
    pytest.param(bits, zeros, scales, id=f"{bits} bits{', zeros' * zeros}, scales {str(scales)[6:]}")
    for bits, zeros, scales in ((4, True, HALF), (4, True, BRAIN), (4, False, BRAIN), (8, False, HALF), (8, True, HALF),
                                (8, True, BRAIN), (8, False, BRAIN))
]  # fmt: skip


def random_x(rows: int, inputs: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(rows, inputs, generator=torch.Generator().manual_seed(1)).to(dtype)


def check_product(weight: Formed, rows: int, dtype: torch.dtype, processors: int = ONE_SPLIT) -> None:
    x = random_x(rows, weight.words.shape[1], dtype)
    assert_product(linear_words(x, weight.words, "sm90", processors), x, weight.multiplied(dtype))


@pytest.mark.parametrize("dtype", [HALF, BRAIN])
@pytest.mark.parametrize(("bits", "zeros", "scales"), FORMS)
@pytest.mark.parametrize(("group", "inputs"), [(32, 96), (64, 576), (128, 640), (100, 100)])
def test_groups_and_tiles_that_are_not_full(
    group: int, inputs: int, bits: int, zeros: bool, scales: torch.dtype, dtype: torch.dtype
) -> None:
    check_product(random_form(bits, OUTPUTS, inputs, group, scales, zeros=zeros), 3, dtype)


@pytest.mark.parametrize("rows", [1, 16, 17, 65])
@pytest.mark.parametrize(("bits", "scales"), [(4, HALF), (4, BRAIN), (8, HALF)])
def test_rows(rows: int, bits: int, scales: torch.dtype) -> None:
    check_product(random_form(bits, 130, 192, 32, scales, zeros=True), rows, HALF)


@pytest.mark.parametrize("rows", [1, 20])
@pytest.mark.parametrize("bits", [4, 8])
def test_splits_of_the_inputs(rows: int, bits: int) -> None:
    """The last split is not full, and neither is its last tile."""
    check_product(random_form(bits, 20, 1376, 32, BRAIN, zeros=True), rows, HALF, MANY_SPLITS)


@pytest.mark.parametrize("dtype", [HALF, BRAIN])
@pytest.mark.parametrize("bits", [4, 8])
def test_a_row_is_the_same_in_any_company_when_deterministic(bits: int, dtype: torch.dtype) -> None:
    weight = random_form(bits, 20, 1152, 64, HALF, zeros=True)
    x = random_x(20, 1152, dtype)
    together = linear_words(x, weight.words, "sm90", MANY_SPLITS, deterministic=True)
    assert_product(together, x, weight.multiplied(dtype))
    for rows in (slice(0, 1), slice(15, 20)):
        alone = linear_words(x[rows].contiguous(), weight.words, "sm90", ONE_SPLIT, deterministic=True)
        assert torch.equal(alone, together[rows])


@pytest.mark.parametrize("dtype", [HALF, BRAIN])
@pytest.mark.parametrize(("bits", "zeros", "scales"), FORMS)
@pytest.mark.parametrize(("group", "inputs"), [(32, 96), (64, 320), (256, 512), (100, 100)])
def test_numbers_to_the_bit(
    group: int, inputs: int, bits: int, zeros: bool, scales: torch.dtype, dtype: torch.dtype
) -> None:
    weight = random_form(bits, 37, inputs, group, scales, zeros=zeros)
    assert torch.equal(dequantize(weight.words, dtype), weight.exact.to(dtype))


@pytest.mark.parametrize("dtype", [HALF, BRAIN])
@pytest.mark.parametrize("bits", [4, 8])
def test_every_code_less_every_zero(bits: int, dtype: torch.dtype) -> None:
    """The lowest and the highest among them: rows that pick one input each give the numbers themselves."""
    codes = 1 << bits
    every, ones = torch.arange(codes), torch.ones(codes, 1, dtype=dtype)
    weight = formed(bits, every.repeat(codes, 1), ones, every[:, None])
    assert torch.equal(dequantize(weight.words, dtype), weight.exact.to(dtype))
    picked = linear_words(torch.eye(codes).to(dtype), weight.words, "sm90", ONE_SPLIT)
    assert torch.equal(picked.t(), weight.exact.to(dtype))


def test_signed_codes_and_zeros_keep_their_order() -> None:
    steps = torch.arange(-128, 128, dtype=torch.int8).repeat(2, 1)
    zeros = torch.tensor([[-128] * 8, [127] * 8], dtype=torch.int8)
    weight = Int8GroupWeight(steps, torch.ones(2, 8, dtype=HALF), 32, zeros)
    meant = steps.double() - zeros[:, :1].double()
    assert torch.equal(dequantize(words_of_int8_groups(weight), HALF).double(), meant)
    symmetric = dequantize(words_of_int8_groups(replace(weight, zeros=None)), HALF)
    assert torch.equal(symmetric.double(), steps.double())


@pytest.mark.filterwarnings("ignore:overflow encountered")  # Products that float16 has no numbers for are asked for.
@pytest.mark.parametrize("scale", [0.0, 6e-8, 65504.0])
@pytest.mark.parametrize("zero", [0, 15])
def test_extreme_scales_meet_extreme_zeros(zero: int, scale: float) -> None:
    """float16 has no number for some of the products, and few digits for others: then as it rounds the exact one."""
    scales = torch.full((3, 3), scale, dtype=HALF)
    weight = formed(4, torch.arange(16).repeat(3, 6), scales, torch.full((3, 3), zero))
    for dtype in (HALF, BRAIN):
        assert torch.equal(dequantize(weight.words, dtype), weight.exact.to(dtype))


@pytest.mark.parametrize("part", ["scales", "zeros"])
def test_what_is_not_there_is_not_read(part: str) -> None:
    words = random_form(8, 20, 128, 32, HALF, zeros=True).words
    short = replace(words, **{part: getattr(words, part)[:-1].clone()})
    with pytest.raises(Exception, match="load out of bounds"):
        linear_words(random_x(1, 128, HALF), short, "sm90", ONE_SPLIT)


def test_a_nan_stays_in_its_row() -> None:
    weight = random_form(4, 20, 96, 32, HALF, zeros=True).words
    x = random_x(3, 96, HALF)
    clean = linear_words(x, weight, "sm90", ONE_SPLIT)
    x[1, 7] = float("nan")
    product = linear_words(x, weight, "sm90", ONE_SPLIT)
    assert product[1].isnan().all()
    assert torch.equal(product[[0, 2]], clean[[0, 2]])


def test_the_form_says_what_it_is() -> None:
    four, eight = (random_form(bits, 3, 96, 32, HALF, zeros=True).words for bits in (4, 8))
    whole = random_form(8, 3, 96, 96, HALF, zeros=False).words
    assert (four.label, eight.label, whole.label) == ("int4-g32-asym", "int8-g32-asym", "int8")
    assert (four.shape, eight.shape, whole.shape) == ((3, 96),) * 3
    assert stored_bytes(four) == 3 * 96 // 2 + 3 * 3 * (2 + 1)
    assert stored_bytes(eight) == 3 * 96 + 3 * 3 * (2 + 1)
