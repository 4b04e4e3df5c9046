"""Groups of codes in panels: their zeros and scales at the ends of their ranges, and what panels do not take."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.kernel_sets import kernel_set_or_skip
from tests.kernels.product_cases import asymmetric_int4_weight, draw, draw_codes, int4_weight, int8_group_weight
from tests.kernels.product_errors import assert_product, exact_product
from torch import Tensor

from quantgate_kernels.cpu.kernels import CpuKernels
from quantgate_kernels.cpu.library import load_functions
from quantgate_kernels.cpu.panel_products import PanelProducts
from quantgate_kernels.cpu.panels import has_panels, pack
from quantgate_kernels.int4_packing import pack_groups, unpack_groups
from quantgate_kernels.panel_weight import PanelWeight
from quantgate_kernels.reference.linear import dequantize
from quantgate_kernels.types import Int4GroupWeight, Int8GroupWeight, LinearWeight, stored_bytes

ROWS = (1, 2, 5, 12, 40)
OUTPUTS, INPUTS = 37, 192


@pytest.fixture(scope="module")
def products() -> PanelProducts:
    kernel_set_or_skip("cpu")
    return PanelProducts(load_functions()[torch.bfloat16])


def of_constants(bits: int, code: int, zero: int, group_size: int) -> Int4GroupWeight | Int8GroupWeight:
    groups = (OUTPUTS, INPUTS // group_size)
    scales = draw(*groups, seed=3).mul(0.1).half()
    if bits == 4:
        codes = torch.full((OUTPUTS, INPUTS), code, dtype=torch.uint8)
        return pack_groups(codes, scales, group_size, torch.full(groups, zero, dtype=torch.uint8))
    codes = torch.full((OUTPUTS, INPUTS), code, dtype=torch.int8)
    return Int8GroupWeight(codes, scales, group_size, torch.full(groups, zero, dtype=torch.int8))


@pytest.mark.parametrize("group_size", [8, 64, INPUTS])
@pytest.mark.parametrize(("bits", "low", "high"), [(4, 0, 15), (8, -128, 127)])
def test_codes_and_zeros_at_their_ends(
    bits: int, low: int, high: int, group_size: int, products: PanelProducts
) -> None:
    x = draw(max(ROWS), INPUTS, seed=5).bfloat16()
    for code in (low, high):
        for zero in (low, high):
            weight = of_constants(bits, code, zero, group_size)
            for rows in ROWS:
                found = products.logits(x[:rows], pack(weight))
                assert_product(found, exact_product(x[:rows], dequantize(weight)), scalings=1)
                assert code != zero or not found.any()


@pytest.mark.parametrize("rows", ROWS)
def test_a_code_that_is_its_zero_hides_nothing_beside_it(rows: int, products: PanelProducts) -> None:
    """An outlier that meets weights of 0 takes no bit from the rest: zeros come off codes, not off finished sums."""
    x = draw(rows, INPUTS, seed=5).bfloat16()
    x[:, 70] = 1e30
    for weight in (
        asymmetric_int4_weight(OUTPUTS, INPUTS, 64),
        int8_group_weight(OUTPUTS, INPUTS, 64, asymmetric=True),
    ):
        assert weight.zeros is not None
        codes = unpack_groups(weight) if isinstance(weight, Int4GroupWeight) else weight.codes.clone()
        codes[:, 70] = weight.zeros[:, 1]
        if isinstance(weight, Int4GroupWeight):
            weight = pack_groups(codes, weight.scales, 64, weight.zeros)
        else:
            weight = replace(weight, codes=codes)
        kept = x.clone()
        kept[:, 70] = 0
        assert torch.equal(products.logits(x, pack(weight)), products.logits(kept, pack(weight)))


@pytest.mark.parametrize("group_size", [32, 96])
def test_whole_numbers_stay_exact(group_size: int, products: PanelProducts) -> None:
    """Scales that are powers of two, of both dtypes: float32 has room for every sum on the way."""
    four = asymmetric_int4_weight(OUTPUTS, INPUTS, group_size)
    eight = int8_group_weight(OUTPUTS, INPUTS, group_size, asymmetric=True)
    powers = draw_codes(-2, 2, *four.scales.shape, seed=9).float().exp2()
    for dtype in (torch.bfloat16, torch.float16):
        for weight in (replace(four, scales=powers.to(dtype)), replace(eight, scales=powers.to(dtype))):
            for rows in ROWS:
                x = draw_codes(-8, 8, rows, INPUTS, seed=6).bfloat16()
                expected = x.double() @ dequantize(weight).double().t()
                assert torch.equal(products.logits(x, pack(weight)).double(), expected)


def extreme_scales(dtype: torch.dtype) -> Tensor:
    """Every power of ten that the dtype has, what is below its normal numbers, and 0."""
    powers = torch.logspace(-40, 38, 79) if dtype == torch.bfloat16 else torch.logspace(-7.5, 4.8, 82)
    return torch.cat((torch.zeros(1), powers, -powers)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("bits", [4, 8])
def test_scales_of_every_size(bits: int, dtype: torch.dtype, products: PanelProducts) -> None:
    """Numbers of 16 bits below the normal ones are scales like any other: nothing of them is lost."""
    scales = extreme_scales(dtype)
    outputs = len(scales)
    whole = asymmetric_int4_weight(outputs, 64, 64) if bits == 4 else int8_group_weight(outputs, 64, 64)
    weight = replace(whole, scales=scales.unsqueeze(1))
    assert (dequantize(weight)[1:] != 0).any(dim=1).all()
    for rows in ROWS:
        x = draw_codes(-100, 100, rows, 64, seed=6).bfloat16()
        ones = replace(whole, scales=torch.ones(outputs, 1, dtype=dtype))
        sums = products.logits(x, pack(ones))
        assert torch.equal(products.logits(x, pack(weight)), sums * scales.float())


HALF, SINGLE = torch.float16, torch.float32
TAKEN: dict[str, LinearWeight] = {
    "one group, not of whole steps": int8_group_weight(5, 66, 66),
    "zeros": asymmetric_int4_weight(5, 64, 32),
    "float16 scales": int8_group_weight(5, 64, 32, HALF),
}
NOT_TAKEN: dict[str, LinearWeight] = {
    "INT4 groups of 4": int4_weight(5, 64, 4),
    "INT8 groups of 12": int8_group_weight(5, 24, 12),
    "INT4, float32 scales": asymmetric_int4_weight(5, 64, 32, SINGLE),
    "INT8, float32 scales": int8_group_weight(5, 64, 32, SINGLE),
}


@pytest.mark.parametrize("name", [*TAKEN, *NOT_TAKEN])
def test_what_has_no_panels_is_multiplied_by_the_reference(name: str) -> None:
    kernel_set_or_skip("cpu")
    kernels, weight = CpuKernels(), (TAKEN | NOT_TAKEN)[name]
    stored, x = kernels.stored_form(weight, torch.bfloat16), draw(3, weight.shape[1], seed=5).bfloat16()
    assert has_panels(weight) == isinstance(stored, PanelWeight) == (name in TAKEN)
    exact = x.double() @ dequantize(weight).double().t()
    magnitude = x.double().abs() @ dequantize(weight).double().abs().t()
    assert ((kernels.linear(x, stored).double() - exact).abs() <= 2.0**-7 * magnitude).all()


def test_bytes_of_panels_count_codes_scales_and_zeros() -> None:
    for weight in (asymmetric_int4_weight(64, 128, 32), int8_group_weight(64, 128, 32, HALF, asymmetric=True)):
        assert stored_bytes(pack(weight)) == stored_bytes(weight)
