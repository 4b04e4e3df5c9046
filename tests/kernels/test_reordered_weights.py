"""Products with weights whose inputs stand in an order of their own, against float64 and against weights in order."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.kernel_sets import kernel_set_or_skip
from tests.kernels.own_rows import DTYPES, assert_rows_are_their_own
from tests.kernels.own_rows import ROWS as OWN_ROWS
from tests.kernels.product_cases import draw
from tests.kernels.reordered_cases import FORMS, ROWS, SIZES, act_order_int4, dynamic_weight, in_order, some_order
from torch import Tensor

from quantgate_kernels.cpu.fixed_order_products import FixedOrderProducts
from quantgate_kernels.kernel_set import KernelSet
from quantgate_kernels.panel_weight import PanelWeight
from quantgate_kernels.reference.linear import dequantize
from quantgate_kernels.registry import make_kernel_set
from quantgate_kernels.types import ReorderedWeight, StoredWeight, stored_bytes


def is_right(product: Tensor, x: Tensor, meant: Tensor) -> bool:
    """In bfloat16 a dequantized weight and a result are off by 2^-9 of their size each."""
    exact, magnitude = x.double() @ meant.t(), x.double().abs() @ meant.abs().t()
    tolerance = 2.0**-8 if product.dtype == torch.bfloat16 else 2.0**-18
    return product.dtype == x.dtype and bool(((product.double() - exact).abs() <= tolerance * magnitude).all())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("form", "outputs", "inputs"), SIZES)
def test_products_are_those_of_the_inputs_as_they_come(
    form: str, outputs: int, inputs: int, dtype: torch.dtype, kernels: KernelSet
) -> None:
    weight, meant = FORMS[form](outputs, inputs, dtype)
    stored = kernels.stored_form(weight, dtype)
    assert isinstance(stored, ReorderedWeight)
    for rows in ROWS:
        x = draw(rows, inputs, seed=5).to(dtype)
        assert is_right(kernels.linear(x, stored), x, meant)
        # The measure itself must be able to tell: the inverse is another order.
        wrong = replace(stored, order=stored.order.argsort().to(torch.int32))
        assert not is_right(kernels.linear(x, wrong), x, meant)
    assert kernels.paths["reorder_inputs"] == "torch.index_select"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("form", "outputs", "inputs"), SIZES)
def test_inputs_in_order_change_no_bit(
    form: str, outputs: int, inputs: int, dtype: torch.dtype, kernels: KernelSet
) -> None:
    plain = FORMS[form](outputs, inputs, dtype)[0].weight
    weight = ReorderedWeight(plain, torch.arange(inputs, dtype=torch.int32))
    reordered, ordered = kernels.stored_form(weight, dtype), kernels.stored_form(plain, dtype)
    bias = draw(outputs, seed=8).to(dtype)
    for rows in ROWS:
        x = draw(rows, inputs, seed=5).to(dtype)
        assert torch.equal(kernels.linear(x, reordered, bias), kernels.linear(x, ordered, bias))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("outputs", "inputs"), [(70, 66), (33, 576)])
def test_sums_of_codes_are_the_same_bits_in_any_order(
    outputs: int, inputs: int, dtype: torch.dtype, kernels: KernelSet
) -> None:
    weight, plain = dynamic_weight(outputs, inputs)
    reordered, ordered = kernels.stored_form(weight, dtype), kernels.stored_form(plain, dtype)
    for rows in ROWS:
        x = draw(rows, inputs, seed=5).to(dtype)
        assert torch.equal(kernels.linear(x, reordered), kernels.linear(x, ordered))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", ["dense", "int8", "int4-g32"])
def test_rows_of_the_deterministic_sets_are_their_own(
    form: str, dtype: torch.dtype, lone_row_kernels: KernelSet
) -> None:
    weight, meant = FORMS[form](70, 96, dtype)
    stored, bias = lone_row_kernels.stored_form(weight, dtype), draw(70, seed=8).to(dtype)
    x = draw(OWN_ROWS, 96, seed=5).to(dtype)
    assert_rows_are_their_own(lambda group: lone_row_kernels.linear(x[group], stored, bias))
    assert is_right(lone_row_kernels.linear(x, stored), x, meant)
    # By the product that this set has for the weight in order.
    assert torch.equal(
        lone_row_kernels.linear(x, stored), lone_row_kernels.linear(x[:, weight.order].contiguous(), weight.weight)
    )


def test_rows_of_a_deterministic_product_are_reordered_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The product keeps rows apart itself: one at a time, each would read the weight again."""
    kernel_set_or_skip("cpu")
    kernels, multiplied = make_kernel_set("cpu", deterministic=True), []
    linear = FixedOrderProducts.linear

    def watched(self: FixedOrderProducts, x: Tensor, weight: StoredWeight) -> Tensor | None:
        product = linear(self, x, weight)
        if product is not None:
            multiplied.append(len(x))
        return product

    monkeypatch.setattr(FixedOrderProducts, "linear", watched)
    kernels.linear(draw(OWN_ROWS, 96), FORMS["int4-g32"](70, 96, torch.float32)[0])
    assert multiplied == [OWN_ROWS]


@pytest.mark.parametrize("dtype", DTYPES)
def test_codes_of_the_deterministic_sets(dtype: torch.dtype, lone_row_kernels: KernelSet) -> None:
    weight, plain = dynamic_weight(70, 66)
    x = draw(OWN_ROWS, 66, seed=5).to(dtype)
    stored = lone_row_kernels.stored_form(weight, dtype)
    assert torch.equal(lone_row_kernels.linear(x, stored), lone_row_kernels.linear(x, plain))


@pytest.mark.parametrize("form", FORMS)
def test_it_stands_for_what_its_inputs_as_they_come_are_multiplied_by(form: str) -> None:
    weight, meant = FORMS[form](6, 128, torch.float32)
    torch.testing.assert_close(dequantize(weight).double(), meant, rtol=1e-6, atol=0)


def test_it_has_the_shape_and_label_of_its_weight_and_the_bytes_of_the_order_beside_it() -> None:
    weight, _ = act_order_int4(70, 96, 32, torch.bfloat16)
    assert (weight.shape, weight.label) == ((70, 96), "int4-g32")
    assert stored_bytes(weight) == stored_bytes(weight.weight) + 96 * 4


def test_panels_hold_the_weight_and_its_halves_where_they_are_gates_and_ups() -> None:
    weight, _ = act_order_int4(64, 96, 32, torch.bfloat16)
    stored = kernel_set_or_skip("cpu").stored_form(weight, torch.bfloat16, split=True)
    assert isinstance(stored, ReorderedWeight)
    assert isinstance(stored.weight, PanelWeight)
    assert stored.weight.split
    assert (stored.shape, stored.label) == (weight.shape, weight.label)
    assert stored_bytes(stored) == stored_bytes(stored.weight) + 96 * 4


@pytest.mark.parametrize("order", [[0, 1, 1, 3], [0, 1, 2, 4], [-1, 0, 1, 2]])
def test_an_order_that_misses_an_input_is_refused(order: list[int], kernels: KernelSet) -> None:
    plain = in_order(FORMS["dense"](3, 4, torch.bfloat16)[0].weight, some_order(4))
    weight = replace(plain, order=torch.tensor(order, dtype=torch.int32))
    with pytest.raises(ValueError, match="must hold each of its 4 inputs once"):
        kernels.stored_form(weight, torch.bfloat16)


def test_an_order_with_gaps_in_memory_is_refused(kernels: KernelSet) -> None:
    weight = replace(FORMS["dense"](3, 4, torch.bfloat16)[0], order=some_order(4).repeat_interleave(2)[::2])
    with pytest.raises(ValueError, match="must lie in one piece"):
        kernels.stored_form(weight, torch.bfloat16)


@pytest.mark.parametrize("order", [torch.arange(4), torch.arange(5, dtype=torch.int32)])
def test_an_order_of_another_kind_or_length_is_refused(order: Tensor) -> None:
    with pytest.raises(ValueError, match="a weight with 4 inputs is int32 of these, not int"):
        ReorderedWeight(FORMS["dense"](3, 4, torch.bfloat16)[0].weight, order)
