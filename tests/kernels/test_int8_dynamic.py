"""INT8 weights times activations that are quantized row by row: exact sums, one scale a row, rounded once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.own_rows import DTYPES, ROWS, assert_rows_are_their_own
from tests.kernels.test_stored_weights import random_normal
from torch import Tensor

from quantgate_kernels.kernel_set import KernelSet
from quantgate_kernels.reference import int8_dynamic
from quantgate_kernels.reference.kernels import ReferenceKernels
from quantgate_kernels.reference.linear import dequantize
from quantgate_kernels.types import Int8DynamicWeight, stored_bytes

Multiply = Callable[[Tensor, Int8DynamicWeight], Tensor]

WAYS: dict[str, Multiply] = {
    "int32": int8_dynamic.multiply_in_int32,
    "chunks": int8_dynamic.multiply_in_chunks,
}
SHAPES = [(1, 2), (1, 64), (33, 7), (192, 576), (50, 1041), (3, 5000)]
ROW_COUNTS = (1, 2, 5, 16, 300)


def weight_of(outputs: int, inputs: int, seed: int = 2) -> Int8DynamicWeight:
    generator = torch.Generator().manual_seed(seed)
    codes = torch.randint(-127, 128, (outputs, inputs), generator=generator).to(torch.int8)
    return Int8DynamicWeight(codes, torch.rand(outputs, generator=generator) * 0.01 + 1e-4)


def defined_product(x: Tensor, weight: Int8DynamicWeight) -> Tensor:
    """The definition in NumPy, sums in integers of 64 bits; NumPy has no bfloat16, so that torch rounds to it."""
    rows = x.float().numpy()
    scales = np.abs(rows).max(axis=1) / np.float32(127)
    usable = (scales > 0) & np.isfinite(scales)
    with np.errstate(invalid="ignore", divide="ignore"):
        codes = np.rint(rows / scales[:, None]).clip(-127, 127)
        codes = np.where(usable[:, None], codes, 0).astype(np.int64)
        sums = codes @ weight.codes.numpy().astype(np.int64).T
        product = sums.astype(np.float32) * (scales[:, None] * weight.scales.numpy())
    assert product.dtype == np.float32
    return torch.from_numpy(product).to(x.dtype)


def assert_same_bits(found: Tensor, expected: Tensor) -> None:
    assert found.dtype == expected.dtype
    assert torch.equal(found.isnan(), expected.isnan())
    assert torch.equal(found.nan_to_num(0.0), expected.nan_to_num(0.0))


@pytest.fixture(params=list(WAYS))
def multiply(request: pytest.FixtureRequest) -> Multiply:
    if request.param == "int32" and not int8_dynamic.has_int32_product(torch.ones(1, 2)):
        pytest.skip("torch's integer product is not exact on this CPU; products take chunks here")
    return WAYS[request.param]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", ROW_COUNTS)
@pytest.mark.parametrize(("outputs", "inputs"), SHAPES)
def test_both_ways_keep_the_definition_bit_by_bit(
    multiply: Multiply, outputs: int, inputs: int, rows: int, dtype: torch.dtype
) -> None:
    x, weight = random_normal(rows, inputs, seed=rows).to(dtype), weight_of(outputs, inputs)
    assert_same_bits(multiply(x, weight), defined_product(x, weight))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", ROW_COUNTS)
@pytest.mark.parametrize(("outputs", "inputs"), [*SHAPES, (1, 1), (70, 1)])
def test_every_kernel_set_keeps_it(
    kernels: KernelSet, outputs: int, inputs: int, rows: int, dtype: torch.dtype
) -> None:
    x, given = random_normal(rows, inputs, seed=rows).to(dtype), weight_of(outputs, inputs)
    assert_same_bits(kernels.linear(x, kernels.stored_form(given, dtype)), defined_product(x, given))


def test_by_hand() -> None:
    """Scales 2 and 0.5; 5 / 2 and -3 / 2 lie between two codes and go to the even one."""
    weight = Int8DynamicWeight(torch.tensor([[1, 2, 3], [-127, 0, 127]], dtype=torch.int8), torch.tensor([0.5, 2.0]))
    x = torch.tensor([[254.0, 5.0, -3.0], [0.0, 63.5, 1.0]])
    expected = [
        [(127 * 1 + 2 * 2 - 2 * 3) * 2 * 0.5, (127 * -127 - 2 * 127) * 2 * 2.0],
        [(127 * 2 + 2 * 3) * 0.5 * 0.5, 2 * 127 * 0.5 * 2.0],
    ]
    assert ReferenceKernels().linear(x, weight).tolist() == expected
    assert dequantize(weight).tolist() == [[0.5, 1.0, 1.5], [-254.0, 0.0, 254.0]]
    assert stored_bytes(weight) == 6 + 2 * 4


@pytest.mark.parametrize("inputs", [576, 1040, 1041, 1536, 5000, 133_144])
@pytest.mark.parametrize("rows", [1, 7])
def test_the_largest_codes_add_up_exactly(multiply: Multiply, inputs: int, rows: int) -> None:
    """All codes +-127: sums beyond 2^24, of which float32 would lose the last digits; up to the whole of an int32."""
    signs = torch.where(random_normal(3, inputs) < 0, -1, 1)
    signs[0] = 1
    signs[1, : inputs // 2] = -1
    scales = torch.ones(3)
    weight = Int8DynamicWeight((signs * 127).to(torch.int8), scales)
    x = torch.where(random_normal(rows, inputs, seed=4) < 0, -127.0, 127.0)
    x[0] = 127.0
    x[0, -1] = 126.0
    exact = x.to(torch.int64) @ (signs * 127).t()
    assert int(exact[0, 0]) == 127 * 127 * inputs - 127
    assert torch.equal(multiply(x, weight), exact.float())


def test_more_inputs_than_an_int32_holds_are_summed_in_chunks() -> None:
    inputs = int8_dynamic.MOST_INPUTS_IN_INT32 + 1
    weight = Int8DynamicWeight(torch.full((1, inputs), 127, dtype=torch.int8), torch.ones(1))
    kernels = ReferenceKernels()
    product = kernels.linear(torch.full((1, inputs), 127.0), weight)
    assert inputs * 127**2 > 2**31 - 1
    assert product.item() == float(torch.tensor(inputs * 127**2).float())
    assert kernels.paths == {"linear.int8-w8a8": "quantize rows, exact float32 products in chunks"}


def test_a_product_that_saturates_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on CPUs that shift one operand to 0..255 and add pairs of products in 16 bits."""

    def saturating(left: Tensor, right: Tensor) -> Tensor:
        products = (left.int() + 128).unsqueeze(1) * right.t().int().unsqueeze(0)
        pairs = products.view(*products.shape[:2], -1, 2).sum(-1).clamp(-(2**15), 2**15 - 1)
        return (pairs.sum(-1) - 128 * right.int().sum(0)).to(torch.int32)

    def absent(_left: Tensor, _right: Tensor) -> Tensor:
        raise RuntimeError("not implemented for this CPU")

    for broken in (saturating, absent):
        with monkeypatch.context() as patch:
            patch.setattr(torch, "_int_mm", broken)
            int8_dynamic._int32_product_is_exact.cache_clear()
            kernels, x, weight = ReferenceKernels(), random_normal(3, 32), weight_of(5, 32)
            assert_same_bits(kernels.linear(x, weight), defined_product(x, weight))
            assert kernels.paths == {"linear.int8-w8a8": "quantize rows, exact float32 products in chunks"}
    int8_dynamic._int32_product_is_exact.cache_clear()


@pytest.mark.parametrize("dtype", DTYPES)
def test_odd_rows_change_nobody_else(kernels: KernelSet, dtype: torch.dtype) -> None:
    """Zeros give zeros, what is no number stays none, an outlier costs its own row its digits and no other's."""
    weight = weight_of(40, 65)
    plain = random_normal(6, 65, seed=3).to(dtype)
    x = plain.clone()
    x[0] = 0.0
    x[1, 7] = float("nan")
    x[2, 64] = float("inf")
    x[3, 0] = 3e4
    x[4] = 1e-30
    product = kernels.linear(x, kernels.stored_form(weight, dtype))
    assert_same_bits(product, defined_product(x, weight))
    assert (product[0] == 0).all()
    assert (product[4] != 0).any()
    assert product[1:3].isnan().all()
    assert product[3:].isfinite().all()
    assert torch.equal(product[5], kernels.linear(plain, kernels.stored_form(weight, dtype))[5])


@pytest.mark.parametrize("largest", [1e-37, 1e-40, 1e-43, 3e-45])
def test_rows_whose_scales_have_lost_their_digits(multiply: Multiply, largest: float) -> None:
    """Scales below the smallest normal number, or 0: codes end at 127 all the same."""
    weight = Int8DynamicWeight(weight_of(9, 33).codes, torch.full((9,), 64.0))
    x = random_normal(3, 33).clamp(-1, 1) * largest
    x[1] = 0.0
    assert_same_bits(multiply(x, weight), defined_product(x, weight))


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 20),
    outputs=st.integers(1, 20),
    inputs=st.integers(1, 200),
    size=st.floats(1e-6, 1e6),
    seed=st.integers(0, 2**31),
)
def test_how_far_from_the_product_of_the_plain_numbers(
    rows: int, outputs: int, inputs: int, size: float, seed: int
) -> None:
    """Each activation moves by half of its row's scale at most, so that a result moves by half of it times sum |w|."""
    x, weight = random_normal(rows, inputs, seed=seed) * size, weight_of(outputs, inputs, seed)
    exact = x.double() @ dequantize(weight).double().t()
    half_steps = x.double().abs().amax(1, keepdim=True) / 127 / 2
    bound = half_steps * dequantize(weight).double().abs().sum(1) * (1 + 1e-4) + exact.abs() * 1e-6
    assert ((ReferenceKernels().linear(x, weight).double() - exact).abs() <= bound).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("outputs", "inputs"), [(96, 64), (33, 7), (50, 1041)])
def test_rows_are_their_own(lone_row_kernels: KernelSet, outputs: int, inputs: int, dtype: torch.dtype) -> None:
    """In the deterministic sets: alone, in any company, on any threads, with the bits of the ordinary sets."""
    given = weight_of(outputs, inputs)
    weight, bias = lone_row_kernels.stored_form(given, dtype), random_normal(outputs, seed=8).to(dtype)
    x = random_normal(ROWS, inputs, seed=5).to(dtype)
    assert_rows_are_their_own(lambda group: lone_row_kernels.linear(x[group], weight, bias))
    assert_same_bits(lone_row_kernels.linear(x, weight), defined_product(x, given))


@pytest.mark.parametrize("dtype", DTYPES)
def test_bias_is_added(kernels: KernelSet, dtype: torch.dtype) -> None:
    weight, x, bias = weight_of(7, 33), random_normal(4, 33).to(dtype), random_normal(7).to(dtype)
    expected = defined_product(x, weight).double() + bias.double()
    found = kernels.linear(x, kernels.stored_form(weight, dtype), bias).double()
    tolerance = 2.0**-8 if dtype == torch.bfloat16 else 2.0**-22
    assert ((found - expected).abs() <= tolerance * (expected.abs() + bias.abs())).all()
