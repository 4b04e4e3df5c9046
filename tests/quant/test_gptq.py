from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quant.correlated import correlated_rows, hessian_of, random_weight
from tests.quant.gptq_by_hand import gptq_by_hand

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.quant.grouped_codes import GroupedCodes
from quantgate_engine.quant.methods.clipping import ClipSearch
from quantgate_engine.quant.methods.gptq import GptqOptions, quantize_gptq
from quantgate_engine.quant.methods.grid import Grid
from quantgate_engine.quant.methods.hessian import factorize
from quantgate_engine.quant.methods.output_error import output_error
from quantgate_engine.quant.methods.rounding import round_to_nearest

ORDERS = [(False, False), (False, True), (True, False), (True, True)]


def quantize(
    weight: torch.Tensor,
    hessian: torch.Tensor,
    grid: Grid,
    *,
    damping: float = 0.01,
    act_order: bool = False,
    static_groups: bool = False,
) -> GroupedCodes:
    factor = factorize(hessian, damping=damping, by_activity=act_order)
    return quantize_gptq(weight, factor, grid, static_groups=static_groups)


@pytest.mark.parametrize(("act_order", "static_groups"), ORDERS)
@pytest.mark.parametrize("size", [16, 48, None])
@pytest.mark.parametrize("symmetric", [True, False])
def test_it_is_gptq_by_hand(size: int | None, symmetric: bool, act_order: bool, static_groups: bool) -> None:
    """Blocks of 128 and 144 columns over 288 inputs, so that updates cross them. A code may differ where float32 and
    float64 fall on either side of a tie, and changes what follows it in its row: rows agree or do not."""
    weight, hessian = random_weight(64, 288, seed=1), hessian_of(correlated_rows(600, 288, seed=2))
    grid = Grid(bits=4, group_size=size, symmetric=symmetric, scale_dtype="float32", clip=ClipSearch(steps=5))
    options = {"damping": 0.01, "act_order": act_order, "static_groups": static_groups}
    expected = gptq_by_hand(weight, hessian, grid, **options)  # type: ignore[arg-type]
    found = quantize(weight, hessian, grid, **options).dequantize()  # type: ignore[arg-type]
    alike = torch.isclose(found, expected, rtol=1e-4, atol=1e-6).all(dim=1)
    assert alike.float().mean() > 0.8
    assert output_error(weight - found, hessian.float()) == pytest.approx(
        output_error(weight - expected, hessian.float()), rel=0.02
    )


@pytest.mark.parametrize(("act_order", "static_groups"), ORDERS)
def test_uncorrelated_inputs_leave_nothing_to_make_good(act_order: bool, static_groups: bool) -> None:
    weight, grid = random_weight(8, 64, seed=3), Grid(bits=3, group_size=16, symmetric=False)
    found = quantize(
        weight, 5 * torch.eye(64, dtype=torch.float64), grid, act_order=act_order, static_groups=static_groups
    )
    expected = round_to_nearest(weight, grid)
    assert torch.equal(found.codes, expected.codes)
    assert torch.equal(found.scales, expected.scales)
    assert found.group_of_input is None


@settings(max_examples=40, deadline=None)
@given(
    outputs=st.integers(1, 9),
    groups=st.integers(1, 5),
    size=st.sampled_from([8, 32]),
    bits=st.sampled_from([2, 3, 4, 8]),
    symmetric=st.booleans(),
    order=st.sampled_from(ORDERS),
    seed=st.integers(0, 10_000),
)
def test_every_shape_gives_codes_in_the_order_of_the_inputs(
    outputs: int, groups: int, size: int, bits: int, symmetric: bool, order: tuple[bool, bool], seed: int
) -> None:
    inputs = groups * size
    weight, hessian = random_weight(outputs, inputs, seed), hessian_of(correlated_rows(3 * inputs, inputs, seed))
    found = quantize(
        weight,
        hessian,
        Grid(bits=bits, group_size=size, symmetric=symmetric),
        act_order=order[0],
        static_groups=order[1],
    )
    assert found.codes.shape == (outputs, inputs)
    assert found.codes.dtype == torch.uint8
    assert int(found.codes.max()) < 2**bits
    assert found.scales.shape == found.zeros.shape == (outputs, groups)
    assert torch.bincount(found.groups(), minlength=groups).tolist() == [size] * groups
    assert found.is_symmetric or not symmetric
    # Two bits leave little of a weight; at more, the codes must stand for what they were made of, input by input.
    if bits == 8:
        assert (found.dequantize() - weight).norm() < 0.3 * weight.norm()


@settings(max_examples=25, deadline=None)
@given(bits=st.sampled_from([3, 4]), order=st.sampled_from(ORDERS), seed=st.integers(0, 10_000))
def test_outputs_of_correlated_inputs_are_never_worse_than_nearest(
    bits: int, order: tuple[bool, bool], seed: int
) -> None:
    weight, hessian = random_weight(24, 96, seed), hessian_of(correlated_rows(400, 96, seed))
    grid = Grid(bits=bits, group_size=32)
    found = quantize(weight, hessian, grid, act_order=order[0], static_groups=order[1])
    nearest = round_to_nearest(weight, grid)
    errors = [output_error(weight - codes.dequantize(), hessian.float()) for codes in (found, nearest)]
    assert errors[0] < 0.8 * errors[1]


def test_groups_follow_the_order_of_activity_unless_they_are_static() -> None:
    weight, hessian = random_weight(4, 64, seed=5), hessian_of(correlated_rows(200, 64, seed=5))
    moving = quantize(weight, hessian, Grid(group_size=16), act_order=True)
    assert moving.group_of_input is not None
    ranks = torch.argsort(torch.argsort(hessian.diagonal(), descending=True))
    assert torch.equal(moving.group_of_input, ranks // 16)
    assert quantize(weight, hessian, Grid(group_size=16), act_order=True, static_groups=True).group_of_input is None


def test_an_input_that_was_never_used_is_rounded_to_nearest() -> None:
    weight, rows = random_weight(6, 32, seed=6), correlated_rows(100, 32, seed=6)
    rows[:, [3, 17]] = 0
    grid = Grid(group_size=None, scale_dtype="float32")
    found = quantize(weight, hessian_of(rows), grid, act_order=True, static_groups=True)
    expected = round_to_nearest(weight, grid)
    assert torch.equal(found.codes[:, [3, 17]], expected.codes[:, [3, 17]])


def test_no_text_at_all_is_rounding_to_nearest() -> None:
    weight = random_weight(6, 32, seed=7)
    found = quantize(weight, torch.zeros(32, 32, dtype=torch.float64), Grid(group_size=16))
    assert torch.equal(found.codes, round_to_nearest(weight, Grid(group_size=16)).codes)


def test_fewer_rows_than_inputs_are_damped_until_there_is_an_inverse() -> None:
    weight, rows = random_weight(6, 64, seed=8), correlated_rows(5, 64, seed=8) * 1e4
    found = quantize(weight, hessian_of(rows), Grid(group_size=16), damping=1e-16)
    assert (found.dequantize() - weight).norm() < weight.norm()


def test_inputs_that_overflow_are_refused() -> None:
    hessian = torch.eye(8, dtype=torch.float64)
    hessian[2, 2] = float("inf")
    with pytest.raises(ConfigurationError, match="overflow on the calibration text"):
        factorize(hessian, damping=0.01, by_activity=False)


@pytest.mark.parametrize("damping", [0.0, -1.0, 2.0])
def test_damping_is_a_share(damping: float) -> None:
    with pytest.raises(ConfigurationError, match=r"GptqOptions\.damping is"):
        GptqOptions(damping=damping)
