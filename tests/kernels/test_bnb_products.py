"""Products by bitsandbytes against what its weights stand for, and what a row has of those beside it."""

from __future__ import annotations

import pytest
import torch
from tests.kernels.own_rows import DTYPES, ROWS, assert_rows_are_their_own
from tests.kernels.product_cases import ADVERSARIAL, draw
from tests.kernels.product_errors import UNIT_BFLOAT16, UNIT_FLOAT32, assert_product, exact_product
from torch import Tensor

from quantgate_engine.quant.formats.bnb4 import quantize_bnb4
from quantgate_kernels.bnb import int8, nf4
from quantgate_kernels.bnb.int8 import OUTLIER_THRESHOLD
from quantgate_kernels.bnb.weights import BnbInt8Weight, BnbNf4TiledWeight, BnbNf4Weight
from quantgate_kernels.kernel_set import KernelSet
from quantgate_kernels.reference.linear import dequantize

SHAPES = [(96, 64), (40, 576), (64, 1536), (1, 128)]
ROW_COUNTS = (1, 2, 3, 7, 16, 17, 33, 40)
UNITS = {torch.bfloat16: UNIT_BFLOAT16, torch.float32: UNIT_FLOAT32}
CONSTANT = 2e-5
"""bitsandbytes multiplies by 6.200124e-05 for 1 / 127^2, which is 6.200012e-05."""


def activations(rows: int, inputs: int, dtype: torch.dtype) -> Tensor:
    """Rows of each kind in turn: ordinary, an outlier, zeros, tiny and subnormal numbers, the codes' whole range."""
    x = draw(rows, inputs, seed=5).clamp(-5.5, 5.5)
    x[1::5, 7] = 300.0
    x[2::5] = 0
    x[3::5] *= 1e-6
    x[3::5, ::3] = 1e-40
    x[4::5] = x[4::5].sign() * 5.0
    return x.to(dtype)


def weights(outputs: int, inputs: int) -> Tensor:
    """An output of zeros, one of the largest magnitude throughout, one with an outlier, one of subnormal numbers."""
    weight = draw(outputs, inputs) * 0.05
    if outputs > 4:
        weight[0] = 0
        weight[1] = weight[1].sign() * 0.3
        weight[2, 5] = 40.0
        weight[3] = 1e-40
    return weight


def tiled(weight: Tensor) -> BnbNf4TiledWeight:
    given = nf4.quantize(weight)
    if not nf4.has_tiled_product(given, torch.bfloat16):
        pytest.skip("bitsandbytes reads tiles on CPUs that multiply bfloat16")
    return nf4.tile(given)


def assert_defined_int8_product(found: Tensor, x: Tensor, weight: BnbInt8Weight) -> None:
    """Codes of the inputs without outliers, times codes; inputs with outliers, times what their codes stand for."""
    half = x.to(torch.float16).float()
    inner = half.where(half.abs() < OUTLIER_THRESHOLD, 0.0)
    largest = inner.abs().amax(dim=1, keepdim=True)
    codes = (inner * (127.0 / largest.where(largest > 0, 1.0))).round()
    outliers = (half.abs() >= OUTLIER_THRESHOLD).any(dim=0)
    codes[:, outliers] = 0
    numbers = dequantize(weight)
    by_codes = exact_product(codes * largest / 127, numbers)
    aside = exact_product(x[:, outliers], numbers[:, outliers].to(x.dtype))
    unit = UNITS[x.dtype]
    bound = CONSTANT * by_codes.magnitude + (aside.terms + 4) * UNIT_FLOAT32 * (by_codes.magnitude + aside.magnitude)
    bound += 2 * unit * (by_codes.product.abs() + (by_codes.product + aside.product).abs()) + aside.flushed + 1e-38
    assert found.dtype == x.dtype
    assert ((found.double() - by_codes.product - aside.product).abs() <= bound).all()


@pytest.mark.parametrize("rows", ROW_COUNTS)
@pytest.mark.parametrize(("outputs", "inputs"), SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_int8_is_what_its_codes_and_outliers_make(dtype: torch.dtype, outputs: int, inputs: int, rows: int) -> None:
    weight, x = int8.quantize(weights(outputs, inputs)), activations(rows, inputs, dtype)
    assert_defined_int8_product(int8.multiply(x, weight), x, weight)


@pytest.mark.parametrize("kind", ADVERSARIAL)
def test_int8_of_activations_that_provoke_mistakes(kind: str) -> None:
    """Numbers that float16 cannot hold, among which the definition's codes are found, are outliers."""
    weight, x = int8.quantize(weights(40, 192)), ADVERSARIAL[kind](5, 192).bfloat16()
    product = int8.multiply(x, weight)
    assert product.isfinite().all()
    assert_defined_int8_product(product, x, weight)


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_a_row_that_is_not_finite_stays_visible_and_spoils_no_other(broken: float) -> None:
    weight, x = int8.quantize(weights(40, 192)[4:]), draw(5, 192).bfloat16()
    x[2, 9] = broken
    finite = int8.multiply(x, weight).isfinite()
    assert finite.all(dim=1).tolist() == [True, True, False, True, True]
    assert not finite[2].any()


@pytest.mark.parametrize("rows", ROW_COUNTS)
@pytest.mark.parametrize(("outputs", "inputs"), SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_nf4_is_what_its_codes_stand_for(dtype: torch.dtype, outputs: int, inputs: int, rows: int) -> None:
    """Scaled codes are rounded to the activations' dtype."""
    weight, x = nf4.quantize(weights(outputs, inputs)), activations(rows, inputs, dtype)
    assert_product(nf4.multiply(x, weight), exact_product(x, dequantize(weight).to(dtype)))


@pytest.mark.parametrize("kind", ADVERSARIAL)
def test_nf4_of_activations_that_provoke_mistakes(kind: str) -> None:
    given, x = nf4.quantize(weights(64, 192)), ADVERSARIAL[kind](5, 192).bfloat16()
    assert_product(nf4.multiply(x, given), exact_product(x, dequantize(given).bfloat16()))
    if nf4.has_tiled_product(given, x.dtype):
        assert_product(
            nf4.multiply_tiled(x, nf4.tile(given)), exact_product(x, dequantize(nf4.tile(given))), scalings=1
        )


@pytest.mark.parametrize("rows", ROW_COUNTS)
@pytest.mark.parametrize(("outputs", "inputs"), [(96, 64), (64, 576), (32, 1536)])
def test_tiled_nf4_is_what_its_codes_stand_for(outputs: int, inputs: int, rows: int) -> None:
    weight, x = tiled(weights(outputs, inputs)), activations(rows, inputs, torch.bfloat16)
    assert_product(nf4.multiply_tiled(x, weight), exact_product(x, dequantize(weight)), scalings=1)


def test_every_code_of_nf4_reaches_a_product() -> None:
    """Among them those of the largest magnitude, of both signs."""
    table = torch.tensor(nf4.NF4_TABLE)
    weight = nf4.quantize(table.repeat(32, 4) * torch.arange(1, 33).unsqueeze(1))
    assert weight.packed.unique().numel() == 8
    assert torch.equal(dequantize(weight), table.repeat(32, 4) * torch.arange(1, 33).unsqueeze(1))
    assert torch.equal(nf4.multiply(torch.eye(64), weight), dequantize(weight).T)


@pytest.mark.parametrize(("outputs", "inputs"), SHAPES)
def test_codes_are_those_that_a_checkpoint_would_have(outputs: int, inputs: int) -> None:
    """Our own writer of bitsandbytes' format finds them too, but where a number lies between two codes."""
    given = draw(outputs, inputs)
    weight, ours = nf4.quantize(given), quantize_bnb4(given, "nf4")
    assert torch.equal(weight.maxima.flatten(), ours.absmax)
    assert torch.equal(dequantize(weight), ours.dequantize())


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_int8_moves_no_weight_by_more_than_half_a_step(size: float) -> None:
    """And what float16 rounds away before."""
    given = draw(24, 192) * size
    weight = int8.quantize(given)
    bound = (weight.maxima / 254).unsqueeze(1) * (1 + 1e-5) + given.abs() * 2.0**-11 + 2.0**-25
    assert ((dequantize(weight) - given).abs() <= bound).all()


def test_tiling_rounds_table_and_scales_and_moves_no_code() -> None:
    given = nf4.quantize(weights(96, 192))
    table, maxima = torch.tensor(nf4.NF4_TABLE).bfloat16().float(), given.maxima.bfloat16().float()
    codes = torch.stack((given.packed >> 4, given.packed & 15), dim=-1).flatten(1).int()
    expected = table[codes] * maxima.repeat_interleave(64, dim=1)
    assert torch.equal(dequantize(nf4.tile(given)), expected)


def test_rows_of_nf4_in_tiles_have_bits_of_their_own() -> None:
    weight, x = tiled(weights(96, 576)), activations(ROWS, 576, torch.bfloat16)
    assert_rows_are_their_own(lambda group: nf4.multiply_tiled(x[group], weight))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_int8_without_outliers_have_bits_of_their_own(dtype: torch.dtype) -> None:
    weight, x = int8.quantize(weights(96, 576)), draw(ROWS, 576, seed=5).clamp(-5.5, 5.5).to(dtype)
    assert_rows_are_their_own(lambda group: int8.multiply(x[group], weight))


def test_outliers_of_other_rows_bring_a_row_of_int8_closer_to_16_bits() -> None:
    """Their inputs are kept out of the codes of all rows, in which those of the row were rounded."""
    weight, x = int8.quantize(draw(96, 576) * 0.05), draw(8, 576, seed=5).clamp(-5.5, 5.5)
    alone = int8.multiply(x[:1], weight)
    x[1:, ::2] = 100.0
    beside = int8.multiply(x, weight)[:1]
    exact = x[:1].double() @ dequantize(weight).double().t()
    assert not torch.equal(alone, beside)
    assert (beside - exact).square().mean() < 0.8 * (alone - exact).square().mean()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("quantize", [int8.quantize, nf4.quantize], ids=["int8", "nf4"])
def test_deterministic_sets_give_each_row_bits_of_its_own(lone_row_kernels: KernelSet, quantize, dtype) -> None:
    """Outliers or not."""
    weight = lone_row_kernels.stored_form(quantize(weights(64, 192)), dtype)
    x, bias = activations(ROWS, 192, dtype), draw(64, seed=8).to(dtype)
    assert x.isfinite().all()
    assert_rows_are_their_own(lambda group: lone_row_kernels.linear(x[group], weight, bias))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_set_hands_products_to_bitsandbytes_and_says_so(kernels: KernelSet, dtype: torch.dtype) -> None:
    given, x = nf4.quantize(weights(64, 192)), activations(5, 192, dtype)
    stored = kernels.stored_form(given, dtype)
    expected = nf4.multiply_tiled(x, stored) if isinstance(stored, BnbNf4TiledWeight) else nf4.multiply(x, given)
    assert isinstance(stored, BnbNf4TiledWeight) == nf4.has_tiled_product(given, dtype)
    assert torch.equal(kernels.linear(x, stored), expected)
    codes, bias = int8.quantize(weights(64, 192)), draw(64, seed=8).to(dtype)
    product = kernels.linear(x, kernels.stored_form(codes, dtype), bias)
    assert torch.equal(product, int8.multiply(x, codes) + bias)
    assert kernels.paths["linear.bnb-nf4"].startswith("bitsandbytes gem")
    assert kernels.paths["linear.bnb-int8"] == "bitsandbytes int8_mixed_scaled_mm"


def test_outputs_that_fill_no_tile_keep_the_plain_form(kernels: KernelSet) -> None:
    given = nf4.quantize(weights(40, 64))
    assert isinstance(kernels.stored_form(given, torch.bfloat16), BnbNf4Weight)


def test_tiles_are_not_made_for_a_product_that_reads_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """As another version of bitsandbytes may."""
    original = nf4.multiply_tiled
    nf4._tiles_are_read.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(nf4, "multiply_tiled", lambda x, weight: original(x, weight).flip(1))
        assert not nf4.has_tiled_product(nf4.quantize(weights(64, 64)), torch.bfloat16)
    nf4._tiles_are_read.cache_clear()
