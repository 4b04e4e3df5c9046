"""Weights in panels and their products in C++: against float64, form by form, within what roundings explain."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tests.kernel_sets import kernel_set_or_skip
from tests.kernels.own_rows import on_threads
from tests.kernels.product_cases import (
    ADVERSARIAL,
    OUTPUTS,
    ROWS,
    SIXTEEN_BIT_FORMS,
    asymmetric_int4_weight,
    cancelling_weight,
    dense_weight,
    draw,
    int4_weight,
    int8_dynamic_weight,
    int8_group_weight,
    int8_weight,
)
from tests.kernels.product_errors import assert_product, exact_product
from torch import Tensor

from quantgate_kernels.cpu.library import load_functions
from quantgate_kernels.cpu.panel_products import PanelProducts
from quantgate_kernels.cpu.panels import pack, unpack
from quantgate_kernels.reference.int8_rows import quantize_rows
from quantgate_kernels.reference.linear import dequantize
from quantgate_kernels.types import Int8DynamicWeight, LinearWeight

FORM_SIZES = [(name, inputs) for name, form in SIXTEEN_BIT_FORMS.items() for inputs in form.inputs]
SPLITTING = (2, 6, 62, 64, 140)
"""Outputs of gate and up together: half of them fill a half panel, or less, or more."""


@pytest.fixture(scope="module")
def products() -> PanelProducts:
    kernel_set_or_skip("cpu")
    return PanelProducts(load_functions()[torch.bfloat16])


def rows_of(rows: int, inputs: int) -> Tensor:
    return draw(rows, inputs, seed=5).bfloat16()


@pytest.mark.parametrize("outputs", OUTPUTS)
@pytest.mark.parametrize(("form", "inputs"), FORM_SIZES)
def test_products_equal_float64_within_their_roundings(
    form: str, inputs: int, outputs: int, products: PanelProducts
) -> None:
    weight = SIXTEEN_BIT_FORMS[form].make(outputs, inputs)
    panels, meant, bias = pack(weight), dequantize(weight), draw(outputs, seed=8).bfloat16()
    for rows in ROWS:
        x = rows_of(rows, inputs)
        found = products.linear(x, panels)
        assert found.dtype == torch.bfloat16
        assert found.shape == (rows, outputs)
        assert_product(found, exact_product(x, meant), scalings=1)
        biased = products.linear(x, panels, bias)
        exact = exact_product(x, meant, bias)
        assert_product(biased, exact, scalings=1)


@pytest.mark.parametrize("outputs", [1, 33, 257])
@pytest.mark.parametrize("inputs", [1, 31, 64, 576])
def test_logits_are_not_rounded_to_16_bits(inputs: int, outputs: int, products: PanelProducts) -> None:
    weight = dense_weight(outputs, inputs)
    panels = pack(weight)
    for rows in ROWS:
        x = rows_of(rows, inputs)
        logits = products.logits(x, panels)
        assert logits.dtype == torch.float32
        assert_product(logits, exact_product(x, weight.weight))


@pytest.mark.parametrize("inputs", [3, 64, 66, 576])
@pytest.mark.parametrize("case", ADVERSARIAL)
def test_adversarial_activations(case: str, inputs: int, products: PanelProducts) -> None:
    """Logits show what rounding to 16 bits would hide. Weights stand so that numbers of alternating sign cancel."""
    for rows in (1, 4, 13, 40):
        x = ADVERSARIAL[case](rows, inputs).bfloat16()
        weight = cancelling_weight(45, inputs)
        assert_product(products.logits(x, pack(weight)), exact_product(x, weight.weight))
        assert_product(products.linear(x, pack(weight)), exact_product(x, weight.weight))
        codes = int8_weight(45, inputs)
        assert_product(products.linear(x, pack(codes)), exact_product(x, dequantize(codes)), scalings=1)
        groups: tuple[LinearWeight, ...] = (int8_group_weight(45, inputs, inputs, asymmetric=True),)
        if inputs % 64 == 0:
            asymmetric = asymmetric_int4_weight(45, inputs, 64, torch.float16)
            groups += (int4_weight(45, inputs, 64), asymmetric, int8_group_weight(45, inputs, 32, torch.float16))
        for grouped in groups:
            exact = exact_product(x, dequantize(grouped))
            assert_product(products.linear(x, pack(grouped)), exact, scalings=1)


def test_subnormal_weights_are_lost_at_most(products: PanelProducts) -> None:
    x = rows_of(9, 64) * 1e3
    weight = dense_weight(40, 64)
    weight.weight[:, ::2] = 1e-39
    assert_product(products.logits(x, pack(weight)), exact_product(x, weight.weight))


@pytest.mark.parametrize("rows", [1, 5, 64])
@pytest.mark.parametrize("form", SIXTEEN_BIT_FORMS)
def test_an_identity_reads_every_weight_out(form: str, rows: int, products: PanelProducts) -> None:
    """One number at a time in `rows` rows: no other weight, and no rounding but the last, can reach the result."""
    inputs = SIXTEEN_BIT_FORMS[form].inputs[-1]
    weight = SIXTEEN_BIT_FORMS[form].make(70, inputs)
    panels, meant = pack(weight), dequantize(weight).bfloat16()
    identity = torch.eye(inputs).bfloat16()
    found = torch.cat([products.linear(part.contiguous(), panels) for part in identity.split(rows)])
    assert torch.equal(found, meant.t())


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize(("form", "inputs"), FORM_SIZES)
def test_panels_stand_for_what_was_packed(form: str, inputs: int, split: bool) -> None:
    for outputs in SPLITTING if split else OUTPUTS:
        weight = SIXTEEN_BIT_FORMS[form].make(outputs, inputs)
        panels = pack(weight, split=split)
        assert panels.shape == (outputs, inputs)
        assert torch.equal(unpack(panels), dequantize(weight))


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("inputs", [1, 3, 4, 31, 64, 66, 576])
def test_panels_of_quads_stand_for_what_was_packed(inputs: int, split: bool) -> None:
    for outputs in SPLITTING if split else OUTPUTS:
        weight = int8_dynamic_weight(outputs, inputs)
        panels = pack(weight, split=split)
        assert panels.shape == (outputs, inputs)
        assert torch.equal(unpack(panels), weight.codes.float() * weight.scales.unsqueeze(1))


def every_form(outputs: int, inputs: int) -> dict[str, LinearWeight]:
    """inputs: a multiple of 128."""
    forms: dict[str, LinearWeight] = {name: form.make(outputs, inputs) for name, form in SIXTEEN_BIT_FORMS.items()}
    return {**forms, "int8-w8a8": int8_dynamic_weight(outputs, inputs)}


FORMS = tuple(every_form(2, 128))


@pytest.mark.parametrize("form", FORMS)
def test_many_rows_have_the_bits_of_a_few(form: str, products: PanelProducts) -> None:
    """With many rows, codes are expanded once for all tiles. Up to three rows have partial sums of their own."""
    panels = pack(every_form(70, 384)[form])
    x = rows_of(300, 384)
    expected = torch.cat([products.linear(part.contiguous(), panels) for part in x.split(20)])
    assert torch.equal(products.linear(x, panels), expected)


@pytest.mark.parametrize("form", FORMS)
def test_threads_change_no_bit(form: str, products: PanelProducts) -> None:
    """Enough outputs that every thread gets some, in panels that no number of threads divides."""
    panels = pack(every_form(711, 384)[form])
    for rows in (1, 3, 17, 70):
        x = rows_of(rows, 384)
        with on_threads(1):
            expected = products.linear(x, panels)
        for threads in (2, 3):
            with on_threads(threads):
                assert torch.equal(products.linear(x, panels), expected), f"{rows} rows, {threads} threads"


@pytest.mark.parametrize("broken", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("form", FORMS)
def test_a_broken_row_stays_in_its_row(form: str, broken: float, products: PanelProducts) -> None:
    panels = pack(every_form(70, 128)[form])
    for rows, place in ((1, 0), (4, 1), (13, 12), (70, 35)):
        clean = rows_of(rows, 128)
        dirty = clean.clone()
        dirty[place, 77] = broken
        expected, found = products.linear(clean, panels), products.linear(dirty, panels)
        others = [row for row in range(rows) if row != place]
        assert torch.equal(found[others], expected[others])
        if broken != broken or form == "int8-w8a8":
            assert found[place].isnan().all()
        else:
            assert not found[place].isfinite().any()


@pytest.mark.parametrize("form", FORMS)
def test_padding_and_memory_behind_the_rows_reach_no_result(form: str, products: PanelProducts) -> None:
    """Rows that stand between broken ones give the bits of rows that stand alone."""
    panels = pack(every_form(33, 128)[form])
    for rows in (1, 3, 13):
        among = torch.full((rows + 2, 128), float("nan")).bfloat16()
        among[1:-1] = rows_of(rows, 128)
        expected = products.linear(rows_of(rows, 128), panels)
        assert torch.equal(products.linear(among[1:-1], panels), expected)


@pytest.mark.parametrize("form", FORMS)
def test_no_rows_are_no_error(form: str, products: PanelProducts) -> None:
    assert products.linear(rows_of(0, 128), pack(every_form(33, 128)[form])).shape == (0, 33)


def dynamic_product(x: Tensor, weight: Int8DynamicWeight) -> Tensor:
    """By the definition, its sums in int64: -> float32 [T, out], before it is rounded to the dtype of x."""
    codes, row_scales = quantize_rows(x.float())
    sums = codes.long() @ weight.codes.long().t()
    return sums.float() * (row_scales.unsqueeze(1) * weight.scales)


@pytest.mark.parametrize("outputs", OUTPUTS)
@pytest.mark.parametrize("inputs", [1, 2, 3, 4, 31, 64, 66, 576])
def test_dynamic_products_have_the_bits_of_their_definition(inputs: int, outputs: int, products: PanelProducts) -> None:
    weight = int8_dynamic_weight(outputs, inputs)
    panels, bias = pack(weight), draw(outputs, seed=8).bfloat16()
    for rows in ROWS:
        x = rows_of(rows, inputs) * 3
        expected = dynamic_product(x, weight)
        assert torch.equal(products.logits(x, panels), expected), f"{rows} rows"
        assert torch.equal(products.linear(x, panels), expected.bfloat16()), f"{rows} rows"
        biased = (expected.double() + bias.double()).float().bfloat16()
        assert torch.equal(products.linear(x, panels, bias), biased), f"{rows} rows"


def test_codes_of_rows_are_those_of_the_definition(products: PanelProducts) -> None:
    """Read out one by one, by weights of a single code, from rows of any size that bfloat16 has."""
    inputs, rows = 64, 300
    weight = Int8DynamicWeight(torch.eye(inputs).to(torch.int8), torch.ones(inputs))
    x = rows_of(rows, inputs) * torch.logspace(-36, 37, rows).unsqueeze(1).bfloat16()
    assert torch.equal(products.logits(x, pack(weight)), dynamic_product(x, weight))


UNIT_SCALED: dict[str, Callable[[int, int], Tensor]] = {
    "random": lambda rows, inputs: draw(rows, inputs, seed=5).mul(60).round().clamp(-127, 127),
    "largest": lambda rows, inputs: torch.full((rows, inputs), 127.0),
    "smallest": lambda rows, inputs: torch.full((rows, inputs), -127.0),
    "alternating": lambda rows, inputs: torch.tensor([127.0, -127.0]).repeat(rows, inputs // 2 + 1)[:, :inputs].clone(),
    "one code": lambda rows, inputs: torch.zeros(rows, inputs).index_fill_(1, torch.tensor([inputs // 2]), 127.0),
    "ties": lambda rows, inputs: draw(rows, inputs, seed=5).mul(60).round().clamp(-126, 126) + 0.5,
}
"""Rows whose largest is 127, and so their scale 1: whole numbers are their own codes."""


@pytest.mark.parametrize("inputs", [1, 3, 64, 66, 576, 5000])
@pytest.mark.parametrize("case", UNIT_SCALED)
def test_sums_of_codes_are_exact_to_the_last_bit(case: str, inputs: int, products: PanelProducts) -> None:
    """Scales of 1 show the sum itself. 5,000 products of 127 * 127 lie beyond what float32 can count one by one."""
    for extreme in (-127, 127, None):
        weight = int8_dynamic_weight(37, inputs)
        codes = weight.codes if extreme is None else torch.full_like(weight.codes, extreme)
        panels = pack(Int8DynamicWeight(codes, torch.ones(37)))
        for rows in (1, 3, 8, 33):
            x = UNIT_SCALED[case](rows, inputs)
            x[:, 0] = 127.0
            x = x.bfloat16()
            # Ties go to the even code, in torch as in the definition.
            sums = x.float().round().long() @ codes.long().t()
            assert torch.equal(products.logits(x, panels), sums.float()), f"{rows} rows"


def test_dynamic_rows_have_scales_of_their_own(products: PanelProducts) -> None:
    """Rows of unlike size beside each other, zeros among them: each has the bits that it has alone."""
    x = rows_of(12, 192) * torch.logspace(-20, 20, 12).unsqueeze(1).bfloat16()
    x[5] = 0
    panels = pack(int8_dynamic_weight(40, 192))
    found = products.linear(x, panels)
    assert (found[5] == 0).all()
    for row in range(12):
        assert torch.equal(found[row], products.linear(x[row : row + 1], panels)[0])
