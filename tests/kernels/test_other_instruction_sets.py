"""The whole library compiled for other instruction sets than this machine's: the portable paths are right too.

Each family of kernels goes through the same comparisons with float64 as the library that this machine really uses, on
fewer sizes.
"""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.kernels import (
    test_cpu_kernels,
    test_head,
    test_head_screen,
    test_int8_kv,
    test_paged_attention,
    test_pointwise,
    test_prefill_attention,
    test_sliding_window,
    test_step_program,
)
from tests.kernels.instruction_sets import ANY_MACHINE, AVX2, require_instructions
from tests.kernels.paged_steps import CASES
from tests.kernels.product_cases import (
    ADVERSARIAL,
    SIXTEEN_BIT_FORMS,
    SixteenBitWeight,
    cancelling_weight,
    dense_weight,
    draw,
    int8_dynamic_weight,
)
from tests.kernels.product_errors import assert_product, exact_product
from tests.kernels.step_arms import SCHEMES, load_model
from tests.kernels.step_scripts import SCRIPTS

from quantgate_kernels.cpu import build, operations
from quantgate_kernels.cpu.compiler import find_compiler
from quantgate_kernels.cpu.fixed_order_products import FixedOrderProducts
from quantgate_kernels.cpu.kernels import CpuKernels
from quantgate_kernels.cpu.library import Functions, bind
from quantgate_kernels.cpu.panel_products import PanelProducts
from quantgate_kernels.cpu.panels import pack
from quantgate_kernels.reference.int8_dynamic import multiply_in_chunks
from quantgate_kernels.reference.linear import dequantize
from quantgate_kernels.types import DenseWeight, LinearWeight
from quantgate_kernels.unavailable import KernelSetUnavailableError

DTYPES = (torch.float32, torch.bfloat16)
ROWS = (1, 2, 3, 12, 13, 40)


@pytest.fixture(scope="session", params=[ANY_MACHINE, AVX2])
def functions(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[torch.dtype, Functions]:
    """Each library is compiled once."""
    flags = require_instructions(request.param)
    try:
        command = [*find_compiler().command, *build.COMMON_FLAGS, *flags]
    except KernelSetUnavailableError as unavailable:
        pytest.skip(str(unavailable))
    return bind(_compile(command, tmp_path_factory.mktemp("kernels")))


def _compile(command: list[str], folder: Path) -> Path:
    library = folder / "other.so"
    units = build.compile_units(command, folder)
    subprocess.run([*command, "-shared", *map(str, units), "-o", str(library)], check=True)
    return library


@pytest.fixture
def cpu(functions: dict[torch.dtype, Functions], monkeypatch: pytest.MonkeyPatch) -> CpuKernels:
    monkeypatch.setattr(operations, "load_functions", lambda: functions)
    return CpuKernels()


@pytest.fixture
def panels(functions: dict[torch.dtype, Functions]) -> PanelProducts:
    return PanelProducts(functions[torch.bfloat16])


@pytest.mark.parametrize("form", SIXTEEN_BIT_FORMS)
def test_products_of_panels(form: str, panels: PanelProducts) -> None:
    for inputs in SIXTEEN_BIT_FORMS[form].inputs:
        for outputs in (1, 33, 70):
            weight, bias = SIXTEEN_BIT_FORMS[form].make(outputs, inputs), draw(outputs, seed=8).bfloat16()
            packed, meant = pack(weight), dequantize(weight)
            for rows in ROWS:
                x = draw(rows, inputs, seed=5).bfloat16()
                exact = exact_product(x, meant, bias)
                assert_product(panels.linear(x, packed, bias), exact, scalings=1)
                assert_product(panels.logits(x, packed), exact_product(x, meant), scalings=1)


@pytest.mark.parametrize("case", ADVERSARIAL)
def test_products_of_panels_with_adversarial_activations(case: str, panels: PanelProducts) -> None:
    x, weight = ADVERSARIAL[case](13, 66).bfloat16(), cancelling_weight(45, 66)
    assert_product(panels.logits(x, pack(weight)), exact_product(x, weight.weight))


@pytest.mark.parametrize("inputs", [1, 3, 64, 66, 576])
def test_products_of_codes_with_codes(inputs: int, panels: PanelProducts) -> None:
    """Rows whose largest is 127 are their own codes, so that not even a tie can differ."""
    weight = int8_dynamic_weight(70, inputs)
    for rows in ROWS:
        x = draw(rows, inputs, seed=5).mul(60).round().clamp(-127, 127)
        x[:, 0] = 127.0
        assert torch.equal(panels.logits(x.bfloat16(), pack(weight)), multiply_in_chunks(x, weight))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", SIXTEEN_BIT_FORMS)
def test_products_of_fixed_order(form: str, dtype: torch.dtype, functions: dict[torch.dtype, Functions]) -> None:
    products = FixedOrderProducts(functions)
    for inputs in SIXTEEN_BIT_FORMS[form].inputs:
        given = SIXTEEN_BIT_FORMS[form].make(37, inputs)
        weight = given if dtype == torch.bfloat16 else widened(given)
        for rows in ROWS:
            x = draw(rows, inputs, seed=5).to(dtype)
            found = products.linear(x, weight)
            assert found is not None
            exact = x.double() @ dequantize(given).double().t()
            magnitude = x.double().abs() @ dequantize(given).double().abs().t()
            # INT4 weights are expanded to the type of x, rounded once.
            tolerance = 2.0**-8 if dtype == torch.bfloat16 else 2.0**-18
            assert ((found.double() - exact).abs() <= tolerance * magnitude).all()


def widened(weight: SixteenBitWeight) -> LinearWeight:
    """The same numbers for activations in float32."""
    if isinstance(weight, DenseWeight):
        return DenseWeight(weight.weight.float())
    return replace(weight, scales=weight.scales.float())


def test_logits_of_fixed_order(functions: dict[torch.dtype, Functions]) -> None:
    weight, x = dense_weight(133, 66), draw(9, 66, seed=5).bfloat16()
    logits = FixedOrderProducts(functions).logits(x, weight)
    assert logits is not None
    assert_product(logits, exact_product(x, weight.weight))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 7, 100, 576])
def test_pointwise_operations(width: int, dtype: torch.dtype, cpu: CpuKernels) -> None:
    for rows in (1, 3):
        test_cpu_kernels.test_silu_and_mul(cpu, 1, width, rows, dtype)
        for spread in (1e-6, 1.0, 1e6):
            cpu.paths.clear()
            test_cpu_kernels.test_rms_norm(cpu, 1, width, rows, dtype, spread)


def test_pointwise_extremes(cpu: CpuKernels) -> None:
    test_cpu_kernels.test_bfloat16_rounds_to_the_nearest_and_ties_to_even(cpu)
    test_cpu_kernels.test_a_nan_stays_one_in_every_pointwise_kernel(cpu)
    test_pointwise.test_rms_norm_keeps_its_mean_in_float32(cpu)
    for gate in (-1e30, -89.0, 0.0, 88.0, 1e30):
        test_cpu_kernels.test_silu_of_extreme_gates(cpu, gate)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("head_dim", [2, 6, 64, 80])
def test_rope_and_the_write_of_keys_and_values(head_dim: int, dtype: torch.dtype, cpu: CpuKernels) -> None:
    for rows in (1, 3):
        test_cpu_kernels.test_rope_and_write_kv(cpu, 1, rows, 9, 3, head_dim, dtype)
    test_int8_kv.test_keys_and_values_are_written_by_the_definition(head_dim, dtype, cpu)


@pytest.mark.parametrize("name", test_int8_kv.ROWS)
def test_rows_of_an_int8_cache(name: str, cpu: CpuKernels) -> None:
    test_int8_kv.test_rows_by_hand(name, cpu)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("head_dim", [1, 24, 64, 80, 128])
def test_decode_attention(head_dim: int, dtype: torch.dtype, cpu: CpuKernels) -> None:
    for heads, kv_heads in ((9, 3), (8, 1)):
        for spread in (1.0, 30.0):
            cpu.paths.clear()
            test_cpu_kernels.test_decode_attention(cpu, heads, kv_heads, head_dim, 5, spread, dtype)


@pytest.mark.parametrize("name", CASES)
def test_attention_of_prefills_and_mixed_steps(name: str, cpu: CpuKernels) -> None:
    test_paged_attention.test_equals_plain_attention(name, 6, 2, cpu)
    for window in (1, 5, 17):
        test_sliding_window.test_equals_plain_attention_over_the_window(name, window, cpu)
        test_int8_kv.test_ragged_batches_equal_plain_attention(name, window, cpu)


@pytest.mark.parametrize("int8", [False, True], ids=["plain", "int8 kv"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(4))
def test_attention_of_whole_steps_in_place(
    seed: int, dtype: torch.dtype, int8: bool, functions: dict[torch.dtype, Functions]
) -> None:
    test_prefill_attention.test_any_step(seed, functions, dtype, int8)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checkpoint") / "llama"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_step_program(scheme: str, checkpoint: Path, functions: dict[torch.dtype, Functions]) -> None:
    model = load_model(checkpoint, scheme)
    test_step_program.assert_no_further_off(model, SCRIPTS["mixed"], functions=functions)


@pytest.mark.parametrize("name", test_head_screen.HEADS)
def test_the_screen_before_the_head(name: str, functions: dict[torch.dtype, Functions]) -> None:
    test_head_screen.test_the_best_tokens_are_those_of_every_logit(name, 1.0, functions)


def test_the_head(cpu: CpuKernels) -> None:
    test_head.test_the_best_logits_of_few_rows_are_exact_and_the_rest_close(5, cpu)
    test_head.test_a_tie_of_rounded_logits_is_decided(cpu)
