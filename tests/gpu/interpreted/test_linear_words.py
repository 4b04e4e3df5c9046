"""Products of 16-bit rows with codes of 4 and 8 bits against float64, and what must not change a bit of them."""

from __future__ import annotations

import pytest
import torch
from tests.gpu.float64_linear import assert_product
from torch import Tensor

from quantgate_kernels.gpu.code_words import words_of_int4, words_of_int8
from quantgate_kernels.gpu.linear_words import linear_words
from quantgate_kernels.int4_packing import pack_groups
from quantgate_kernels.types import Int8ChannelWeight, stored_bytes
from quantgate_kernels.word_weight import WordWeight

ONE_SPLIT, MANY_SPLITS = 1, 1000
"""Processors of the device."""


def random_x(rows: int, inputs: int, dtype: torch.dtype, seed: int = 1) -> Tensor:
    return torch.randn(rows, inputs, generator=torch.Generator().manual_seed(seed)).to(dtype)


def int4(outputs: int, inputs: int, group: int, dtype: torch.dtype) -> tuple[WordWeight, Tensor]:
    """With what it stands for, in float64: rounded once to the dtype that is multiplied."""
    generator = torch.Generator().manual_seed(2)
    codes = torch.randint(0, 16, (outputs, inputs), generator=generator, dtype=torch.uint8)
    scales = (torch.rand(outputs, inputs // group, generator=generator) + 0.1).to(dtype)
    return words_of_int4(pack_groups(codes, scales, group)), numbers(codes, scales, group)


def numbers(codes: Tensor, scales: Tensor, group: int) -> Tensor:
    steps = codes.double() - 8
    return (steps * scales.double().repeat_interleave(group, 1)).to(scales.dtype).double()


def int8(outputs: int, inputs: int, dtype: torch.dtype) -> tuple[WordWeight, Tensor]:
    generator = torch.Generator().manual_seed(3)
    codes = torch.randint(-127, 128, (outputs, inputs), generator=generator, dtype=torch.int8)
    scales = (torch.rand(outputs, generator=generator) + 0.1).to(dtype)
    return words_of_int8(Int8ChannelWeight(codes, scales)), codes.double() * scales.double()[:, None]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    ("group", "inputs"), [(32, 96), (32, 576), (64, 64), (64, 576), (128, 640), (256, 512), (None, 100), (None, 576)]
)
def test_codes_groups_and_tiles_that_are_not_full(group: int | None, inputs: int, dtype: torch.dtype) -> None:
    weight, meant = int8(70, inputs, dtype) if group is None else int4(70, inputs, group, dtype)
    x = random_x(3, inputs, dtype)
    assert_product(linear_words(x, weight, "sm90", ONE_SPLIT), x, meant)


@pytest.mark.parametrize("rows", [1, 2, 15, 16, 17, 64, 65, 70])
@pytest.mark.parametrize("bits", [4, 8])
def test_rows(rows: int, bits: int) -> None:
    weight, meant = int4(130, 192, 64, torch.float16) if bits == 4 else int8(130, 192, torch.float16)
    x = random_x(rows, 192, torch.float16)
    assert_product(linear_words(x, weight, "sm90", ONE_SPLIT), x, meant)


@pytest.mark.parametrize("rows", [1, 20])
@pytest.mark.parametrize("bits", [4, 8])
def test_splits_of_the_inputs(rows: int, bits: int) -> None:
    """The last split is not full, and neither is its last tile."""
    inputs = 1376
    weight, meant = int4(20, inputs, 32, torch.float16) if bits == 4 else int8(20, inputs, torch.float16)
    x = random_x(rows, inputs, torch.float16)
    assert_product(linear_words(x, weight, "sm90", MANY_SPLITS), x, meant)


@pytest.mark.parametrize("bits", [4, 8])
def test_a_row_is_the_same_in_any_company_when_deterministic(bits: int) -> None:
    weight, meant = int4(20, 1152, 64, torch.float16) if bits == 4 else int8(20, 1152, torch.float16)
    x = random_x(70, 1152, torch.float16)
    together = linear_words(x, weight, "sm90", MANY_SPLITS, deterministic=True)
    assert_product(together, x, meant)
    for rows in (slice(0, 1), slice(60, 70)):
        alone = linear_words(x[rows].contiguous(), weight, "sm90", ONE_SPLIT, deterministic=True)
        assert torch.equal(alone, together[rows])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_every_code_of_every_place(dtype: torch.dtype) -> None:
    """Rows that pick one input each give the weights themselves, to the bit."""
    codes = torch.arange(16, dtype=torch.uint8).repeat(64, 4)
    codes = torch.stack([row.roll(shift) for shift, row in enumerate(codes)])
    scales = torch.linspace(0.01, 3, 64 * 2).view(64, 2).to(dtype)
    weight = words_of_int4(pack_groups(codes, scales, 32))
    picked = linear_words(torch.eye(64).to(dtype), weight, "sm90", ONE_SPLIT)
    assert torch.equal(picked.t().double(), numbers(codes, scales, 32))
    bytes_ = torch.arange(-127, 129).clamp(max=127).to(torch.int8).view(4, 64)
    picked = linear_words(torch.eye(64).to(dtype), words_of_int8(Int8ChannelWeight(bytes_, torch.ones(4, dtype=dtype))),
                          "sm90", ONE_SPLIT)  # fmt: skip
    assert torch.equal(picked.t().double(), bytes_.double())


@pytest.mark.filterwarnings(
    "ignore:overflow encountered in cast"
)  # Sums that float16 has no numbers for are asked for.
@pytest.mark.parametrize("bits", [4, 8])
def test_outliers_zeros_and_the_smallest_numbers(bits: int) -> None:
    inputs, outputs = 128, 9
    x = random_x(6, inputs, torch.float16)
    x[0] = 0
    x[1, 5] = 60000
    x[2] = 6e-8
    x[3, ::2], x[3, 1::2] = 2000, -2000
    extreme = torch.tensor([6e-8, 1e-4, 1.0, 100.0, 0.0, 3e-6, 1e-3, 0.5, 7.0], dtype=torch.float16)
    if bits == 4:
        codes = torch.full((outputs, inputs), 15, dtype=torch.uint8)
        codes[4:] = 0
        scales = extreme[:, None].repeat(1, inputs // 32)
        weight, meant = words_of_int4(pack_groups(codes, scales, 32)), numbers(codes, scales, 32)
    else:
        steps = torch.full((outputs, inputs), 127, dtype=torch.int8)
        steps[4:] = -127
        weight = words_of_int8(Int8ChannelWeight(steps, extreme))
        meant = steps.double() * extreme.double()[:, None]
    product = linear_words(x, weight, "sm90", ONE_SPLIT)
    inside = (x.double() @ meant.t()).abs() < 65000
    assert (product[~inside]).isinf().all()
    assert (product[0] == 0).all()
    for column in range(outputs):
        rows = inside[:, column]
        assert_product(product[rows][:, [column]], x[rows], meant[[column]])


def test_a_nan_stays_in_its_row() -> None:
    weight, _ = int4(20, 96, 32, torch.float16)
    x = random_x(3, 96, torch.float16)
    clean = linear_words(x, weight, "sm90", ONE_SPLIT)
    x[1, 7] = float("nan")
    product = linear_words(x, weight, "sm90", ONE_SPLIT)
    assert product[1].isnan().all()
    assert torch.equal(product[[0, 2]], clean[[0, 2]])


def test_the_form_says_what_it_is() -> None:
    (four, _), (eight, _) = int4(3, 96, 32, torch.float16), int8(3, 100, torch.float16)
    assert (four.label, four.shape, eight.label, eight.shape) == ("int4-g32", (3, 96), "int8", (3, 100))
    assert stored_bytes(four) == 3 * 96 // 2 + 3 * 3 * 2
    assert stored_bytes(eight) == 3 * 112 + 3 * 2


def test_a_group_without_a_kernel_is_refused() -> None:
    weight = pack_groups(torch.zeros(1, 96, dtype=torch.uint8), torch.ones(1, 2, dtype=torch.float16), 48)
    with pytest.raises(ValueError, match="groups of 48"):
        words_of_int4(weight)
