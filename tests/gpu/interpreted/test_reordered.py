"""Weights whose inputs stand in an order of their own, over the Triton kernels."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from tests.engine.device_arm import answers, assert_same, config
from tests.engine.reordered_scheme import SCHEME, reorder_inputs
from tests.engine.tiny_model import save_tiny_model
from tests.gpu.float64_linear import assert_product
from tests.gpu.interpreted.test_recorded_steps import RepeatedWork, RepeatingAccelerator
from tests.kernels.product_cases import draw
from tests.kernels.reordered_cases import FORMS, act_order_int4, dynamic_weight

from quantgate_engine.executor.torch_executor import TorchExecutor
from quantgate_engine.quant.precision import Precision
from quantgate_engine.quant.schemes import SCHEMES
from quantgate_kernels.gpu import products
from quantgate_kernels.gpu.kernels import DeterministicTritonKernels, TritonKernels
from quantgate_kernels.reference.kernels import ReferenceKernels
from quantgate_kernels.types import ReorderedWeight
from quantgate_kernels.word_weight import WordWeight

SETS = [TritonKernels, DeterministicTritonKernels]
ROWS = (1, 3, 16, 17, 40)


@pytest.mark.parametrize("kernel_set", SETS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("form", "inputs"), [("int4-g32", 96), ("int4-g64", 192), ("int4-g128", 384), ("int8", 75)])
def test_products_are_those_of_the_inputs_as_they_come(
    form: str, inputs: int, dtype: torch.dtype, kernel_set: type[TritonKernels]
) -> None:
    weight, meant = FORMS[form](33, inputs, dtype)
    meant = meant if form == "int8" else meant.to(dtype).double()
    kernels = kernel_set()
    stored, bias = kernels.stored_form(weight, dtype), draw(33, seed=8).to(dtype)
    assert isinstance(stored, ReorderedWeight)
    assert isinstance(stored.weight, WordWeight)
    ordered = ReorderedWeight(stored.weight, torch.arange(inputs, dtype=torch.int32))
    for rows in ROWS:
        x = draw(rows, inputs, seed=5).to(dtype)
        product = kernels.linear(x, stored)
        assert_product(product, x, meant)
        assert torch.equal(kernels.linear(x, stored, bias), product + bias)
        assert torch.equal(kernels.linear(x, ordered), kernels.linear(x, stored.weight))
    wrong = dataclasses.replace(stored, order=stored.order.flip(0))
    with pytest.raises(AssertionError, match="are off"):
        assert_product(kernels.linear(x, wrong), x, meant)
    assert set(kernels.paths.values()) == {"triton", "torch.index_select"}


@pytest.mark.parametrize("kernel_set", SETS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_sums_of_codes_are_the_same_bits_in_any_order(dtype: torch.dtype, kernel_set: type[TritonKernels]) -> None:
    weight, plain = dynamic_weight(33, 75)
    kernels, x = kernel_set(), draw(17, 75, seed=5).to(dtype)
    expected = ReferenceKernels().linear(x, plain)
    assert torch.equal(kernels.linear(x, kernels.stored_form(weight, dtype)), expected)
    assert kernels.paths["linear.int8-w8a8"] == "triton"


def test_many_rows_are_multiplied_by_words_and_more_by_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    weight, meant = act_order_int4(33, 96, 32, torch.float16)
    kernels, x = TritonKernels(), draw(300, 96, seed=5).half()
    stored = kernels.stored_form(weight, torch.float16)
    assert_product(kernels.linear(x, stored), x, meant.half().double())
    assert "linear.int4-g32" not in kernels.paths
    monkeypatch.setattr(products, "MOST_ROWS_BY_WORDS", 64)
    assert_product(kernels.linear(x, stored), x, meant.half().double())
    assert kernels.paths["linear.int4-g32"] == products.DENSE_PATH


def test_what_has_no_kernel_is_multiplied_as_the_reference_does() -> None:
    weight, _ = act_order_int4(33, 96, 32, torch.float32)
    kernels, reference, x = TritonKernels(), ReferenceKernels(), draw(3, 96, seed=5)
    stored = kernels.stored_form(weight, torch.float32)
    assert torch.equal(kernels.linear(x, stored), reference.linear(x, reference.stored_form(weight, torch.float32)))


@pytest.mark.parametrize("deterministic", [False, True])
def test_decode_steps_over_them_can_be_recorded(
    deterministic: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of an order comes from the host, and steps that are replayed give the tokens of weights in order."""
    half = Precision(storage=torch.float16, compute=torch.float16)
    scheme = dataclasses.replace(SCHEMES[SCHEME], precision=lambda _device, _kernels: half)
    monkeypatch.setitem(SCHEMES, SCHEME, scheme)
    folder, _ = save_tiny_model(tmp_path, num_hidden_layers=1)
    settings = config(kernel_set="triton", deterministic=deterministic)
    plain = TorchExecutor.load(folder, SCHEME, settings)
    reorder_inputs(monkeypatch)
    accelerator = RepeatingAccelerator()
    executor = TorchExecutor.load(folder, SCHEME, settings, accelerator=accelerator)
    assert_same(answers(executor, settings)[0], answers(plain, settings)[0])
    assert accelerator.replays >= 8
    assert executor.info.kernel_paths["reorder_inputs"] == "torch.index_select"
    for recorded in accelerator.recorded:
        assert isinstance(recorded, RepeatedWork)
        assert torch.ops.aten.lift_fresh.default not in recorded.operations
