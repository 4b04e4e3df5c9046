from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quant.correlated import random_weight

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.quant.int4_group import quantize_int4_group
from quantgate_engine.quant.int8_codes import quantize_channels
from quantgate_engine.quant.methods.clipping import ClipSearch
from quantgate_engine.quant.methods.grid import Grid
from quantgate_engine.quant.methods.rounding import round_to_nearest
from quantgate_engine.quant.precision import Precision
from quantgate_kernels.int4_packing import unpack_groups

BITS = st.sampled_from([2, 3, 4, 8])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_the_symmetric_grid_of_four_bits_is_that_of_the_int4_schemes(dtype: str) -> None:
    weight = random_weight(24, 128, seed=3)
    weight[5, 64:] = 0
    expected = quantize_int4_group(weight, Precision(torch.float16, getattr(torch, dtype)), group_size=32)
    found = round_to_nearest(weight, Grid(bits=4, group_size=32, scale_dtype=dtype))
    assert torch.equal(found.codes, unpack_groups(expected))
    assert torch.equal(found.scales, expected.scales)
    assert found.is_symmetric


def test_the_symmetric_grid_of_eight_bits_and_whole_rows_is_that_of_the_int8_schemes() -> None:
    weight = random_weight(24, 128, seed=4)
    codes, scales = quantize_channels(weight, torch.float32)
    found = round_to_nearest(weight, Grid(bits=8, group_size=None, scale_dtype="float32"))
    assert torch.equal(found.codes.to(torch.int16) - 128, codes.to(torch.int16))
    assert torch.equal(found.scales.squeeze(1), scales)


@settings(max_examples=60, deadline=None)
@given(
    bits=BITS,
    symmetric=st.booleans(),
    size=st.sampled_from([8, 24, None]),
    magnitude=st.floats(1.0, 1e2),
    seed=st.integers(0, 10_000),
)
def test_no_weight_moves_by_more_than_its_step(
    bits: int, symmetric: bool, size: int | None, magnitude: float, seed: int
) -> None:
    """Half a step, and where the zero had to be rounded to an integer, half a step more at one end."""
    weight = random_weight(5, 48, seed) * magnitude
    found = round_to_nearest(weight, Grid(bits=bits, group_size=size, symmetric=symmetric))
    steps = found.scales.float()[:, found.groups()]
    furthest = 0.5 if symmetric else 1.0
    moved = (found.dequantize() - weight).abs()
    assert (moved <= steps * furthest + weight.abs() * 2**-10).all()
    assert int(found.codes.max()) <= 2**bits - 1


@settings(max_examples=40, deadline=None)
@given(bits=BITS, symmetric=st.booleans(), seed=st.integers(0, 10_000))
def test_zero_stays_zero(bits: int, symmetric: bool, seed: int) -> None:
    weight = random_weight(4, 32, seed)
    weight[:, ::3] = 0
    weight[2] = 0
    found = round_to_nearest(weight, Grid(bits=bits, group_size=16, symmetric=symmetric)).dequantize()
    assert (found[weight == 0] == 0).all()


def test_weights_of_one_sign_use_all_codes_of_an_asymmetric_grid() -> None:
    weight = torch.linspace(0.0, 1.5, 16).repeat(2, 1)
    found = round_to_nearest(weight, Grid(bits=4, group_size=None, symmetric=False, scale_dtype="float32"))
    assert found.codes[0].tolist() == list(range(16))
    assert found.zeros.tolist() == [[0], [0]]
    assert not found.is_symmetric


@settings(max_examples=40, deadline=None)
@given(bits=BITS, symmetric=st.booleans(), weighted=st.booleans(), seed=st.integers(0, 10_000))
def test_clipping_never_costs_more_than_it_saves(bits: int, symmetric: bool, weighted: bool, seed: int) -> None:
    weight = random_weight(6, 64, seed)
    importance = torch.rand(64, generator=torch.Generator().manual_seed(seed)) ** 4 if weighted else None
    plain = Grid(bits=bits, group_size=32, symmetric=symmetric)
    clipped = Grid(bits=bits, group_size=32, symmetric=symmetric, clip=ClipSearch(least=0.4, steps=12))

    def cost(grid: Grid) -> torch.Tensor:
        lost = (round_to_nearest(weight, grid, importance).dequantize() - weight).square()
        return (lost if importance is None else lost * importance).view(6, 2, 32).sum(-1)

    assert (cost(clipped) <= cost(plain) * (1 + 1e-5)).all()


def test_clipping_gives_up_an_outlier_that_does_not_matter() -> None:
    weight = torch.cat((torch.linspace(-1, 1, 31), torch.tensor([4.0]))).view(1, 32)
    importance = torch.ones(32)
    importance[-1] = 0
    grid = Grid(bits=3, group_size=None, clip=ClipSearch(least=0.2, steps=16))
    assert round_to_nearest(weight, grid, importance).scales.item() < 0.5
    importance[-1] = 1000
    assert round_to_nearest(weight, grid, importance).scales.item() > 0.9


def test_a_scale_that_overflows_its_dtype_is_refused() -> None:
    weight = torch.full((2, 32), 1e6)
    with pytest.raises(ConfigurationError, match=r"does not fit float16.*1e\+06"):
        round_to_nearest(weight, Grid(group_size=32))
    assert round_to_nearest(weight, Grid(group_size=32, scale_dtype="float32")).dequantize()[0, 0] == 1e6


def test_a_weight_that_is_not_a_number_is_refused() -> None:
    weight = random_weight(2, 32, 0)
    weight[1, 3] = float("nan")
    with pytest.raises(ConfigurationError, match="does not fit float16"):
        round_to_nearest(weight, Grid(group_size=32))


def test_groups_must_divide_the_row() -> None:
    with pytest.raises(ConfigurationError, match="100 inputs do not divide into groups of 64"):
        round_to_nearest(torch.ones(2, 100), Grid(group_size=64))


@pytest.mark.parametrize(
    ("field", "value"), [("bits", 5), ("group_size", 0), ("scale_dtype", "float8"), ("scale_dtype", "int8")]
)
def test_a_grid_that_cannot_be_is_refused(field: str, value: int | str) -> None:
    with pytest.raises(ConfigurationError, match=rf"Grid\.{field} is {value!r}; expected"):
        Grid(**{field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(("least", "steps"), [(0.0, 4), (1.0, 4), (0.5, 0)])
def test_a_clipping_search_over_nothing_is_refused(least: float, steps: int) -> None:
    with pytest.raises(ConfigurationError, match="ClipSearch has least"):
        ClipSearch(least=least, steps=steps)
