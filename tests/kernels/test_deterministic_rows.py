"""The deterministic sets: a row's bits are those that it has alone, in any company, at any place, on any threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest
import torch
from tests.kernel_sets import ON_CPU, kernel_set_or_skip
from tests.kernels.own_rows import DTYPES, ROWS, assert_rows_are_their_own
from tests.kernels.product_cases import asymmetric_int4_weight, int8_group_weight
from tests.kernels.test_stored_weights import int4_weight, int8_weight, random_normal

from quantgate_kernels import registry
from quantgate_kernels.cpu import fixed_order_products
from quantgate_kernels.kernel_set import KernelSet
from quantgate_kernels.kernel_set_names import AUTO, KernelSetName
from quantgate_kernels.reference import deterministic, lone_rows
from quantgate_kernels.reference.linear import dequantize
from quantgate_kernels.registry import DETERMINISTIC_SETS, KERNEL_SETS, make_kernel_set
from quantgate_kernels.types import DenseWeight, LinearWeight
from quantgate_kernels.unavailable import KernelSetUnavailableError

FORMS: dict[str, Callable[[int, int, torch.dtype], LinearWeight]] = {
    "dense": lambda outputs, inputs, dtype: DenseWeight(random_normal(outputs, inputs).to(dtype)),
    "int8": int8_weight,
    "int4-g32": lambda outputs, inputs, dtype: int4_weight(outputs, inputs, 32, dtype),
    "int4-g64": lambda outputs, inputs, dtype: int4_weight(outputs, inputs, 64, dtype),
    "int4-g32-asym": lambda outputs, inputs, dtype: asymmetric_int4_weight(outputs, inputs, 32, dtype),
    "int4-g64-asym": lambda outputs, inputs, _: asymmetric_int4_weight(outputs, inputs, 64, torch.float16),
    "int8-g32": lambda outputs, inputs, dtype: int8_group_weight(outputs, inputs, 32, dtype),
    "int8-g64-asym": lambda outputs, inputs, _: int8_group_weight(outputs, inputs, 64, torch.float16, asymmetric=True),
}
SHAPES = [(96, 64), (192, 576), (50, 192), (1, 64)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("outputs", "inputs"), SHAPES)
@pytest.mark.parametrize("form", FORMS)
def test_products(lone_row_kernels: KernelSet, form: str, outputs: int, inputs: int, dtype: torch.dtype) -> None:
    given = FORMS[form](outputs, inputs, dtype)
    weight, bias = lone_row_kernels.stored_form(given, dtype), random_normal(outputs, seed=8).to(dtype)
    x = random_normal(ROWS, inputs, seed=5).to(dtype)
    assert_rows_are_their_own(lambda group: lone_row_kernels.linear(x[group], weight, bias))
    exact = x.double() @ dequantize(given).double().t()
    magnitude = x.double().abs() @ dequantize(given).double().abs().t()
    tolerance = 2.0**-8 if dtype == torch.bfloat16 else 2.0**-18
    product = lone_row_kernels.linear(x, weight)
    assert product.dtype == dtype
    assert ((product.double() - exact).abs() <= tolerance * magnitude).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("inputs", [1, 7, 33, 100])
def test_products_of_widths_that_fill_no_vector(lone_row_kernels: KernelSet, inputs: int, dtype: torch.dtype) -> None:
    weight = DenseWeight(random_normal(37, inputs).to(dtype))
    x = random_normal(ROWS, inputs, seed=5).to(dtype)
    assert_rows_are_their_own(lambda group: lone_row_kernels.linear(x[group], weight))
    exact = x.double() @ weight.weight.double().t()
    magnitude = x.double().abs() @ weight.weight.double().abs().t()
    tolerance = 2.0**-8 if dtype == torch.bfloat16 else 2.0**-18
    assert ((lone_row_kernels.linear(x, weight).double() - exact).abs() <= tolerance * magnitude).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_logits_do_not_depend_on_whether_probabilities_are_wanted(
    lone_row_kernels: KernelSet, dtype: torch.dtype
) -> None:
    head = DenseWeight(random_normal(4133, 64).to(dtype))
    x = random_normal(ROWS, 64, seed=5).to(dtype)
    assert_rows_are_their_own(lambda group: lone_row_kernels.head(x[group], head))
    logits = lone_row_kernels.head(x, head)
    assert torch.equal(lone_row_kernels.head(x, head, exact=True), logits)
    assert logits.dtype == torch.float32
    magnitude = x.double().abs() @ head.weight.double().abs().t()
    assert ((logits.double() - x.double() @ head.weight.double().t()).abs() <= 2.0**-18 * magnitude).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 50, 96, 577])
def test_pointwise_operations(lone_row_kernels: KernelSet, width: int, dtype: torch.dtype) -> None:
    """Odd widths: rows begin at any address, and the end of a batch is not the end of a row."""
    x, residual = (random_normal(ROWS, width, seed=seed).to(dtype) for seed in (2, 3))
    gate_up = random_normal(ROWS, 2 * width, seed=4).to(dtype) * 6
    weight = random_normal(width).to(dtype)
    for side in range(2):
        assert_rows_are_their_own(lambda group, side=side: lone_row_kernels.rms_norm(x[group], weight, 1e-5)[side])
        assert_rows_are_their_own(
            lambda group, side=side: lone_row_kernels.rms_norm(x[group], weight, 1e-5, residual[group])[side]
        )
    assert_rows_are_their_own(lambda group: lone_row_kernels.silu_and_mul(gate_up[group]))


def test_every_set_has_a_variant_with_a_name_of_its_own() -> None:
    names: tuple[KernelSetName, ...] = get_args(KernelSetName)
    assert set(DETERMINISTIC_SETS) == {name for name in names if name != AUTO}
    for name in ON_CPU:
        kernel_set_or_skip(name)
        assert make_kernel_set(name, deterministic=True).name == f"{name}-deterministic"
        assert make_kernel_set(name).name == name


def test_a_set_without_a_variant_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KERNEL_SETS, "fast", KERNEL_SETS["reference"])
    monkeypatch.setitem(registry.FASTER_SETS, "cpu", ("fast",))
    assert make_kernel_set("fast").name == "reference"
    with pytest.raises(KernelSetUnavailableError, match=r"`fast` has no deterministic variant; choose one .*reference"):
        make_kernel_set("fast", deterministic=True)


def test_paths_tell_the_fixed_order() -> None:
    kernel_set_or_skip("cpu")
    kernels = make_kernel_set("cpu", deterministic=True)
    x = torch.ones(3, 64)
    for form, make in FORMS.items():
        kernels.linear(x, kernels.stored_form(make(96, 64, torch.float32), torch.float32))
        label = "float32" if form == "dense" else form
        assert kernels.paths[f"linear.{label}"] == fixed_order_products.PATH
    kernels.head(x, DenseWeight(torch.ones(9, 64)))
    assert kernels.paths["head"] == fixed_order_products.PATH


def test_operands_that_the_c_code_does_not_read_take_the_references_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """16-bit storage under float32 arithmetic, as on CPUs that multiply no bfloat16."""
    kernel_set_or_skip("cpu")
    kernels = make_kernel_set("cpu", deterministic=True)
    asked: list[int] = []
    monkeypatch.setattr(deterministic, "rows_of", lambda x: asked.append(x.shape[0]) or lone_rows.rows_of(x))
    weight = DenseWeight(random_normal(9, 8).half())
    x = random_normal(ROWS, 8)
    assert_rows_are_their_own(lambda group: kernels.linear(x[group], weight))
    assert_rows_are_their_own(lambda group: kernels.head(x[group], weight))
    assert asked
    torch.testing.assert_close(kernels.linear(x, weight), x @ weight.weight.float().t())
