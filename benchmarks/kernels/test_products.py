"""x @ weight.T of the bundled model's layers, for each form of weight: panels, and torch's fastest operator.

Bound: the weight and the rows are read once; two operations for each weight and row, on int8 numbers where activations
are quantized too and else on 16-bit ones.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from benchmarks.kernels.beside_bounds import TORCH, BesideBound
from benchmarks.kernels.shapes import FORMS, LINEAR_LAYERS, ROWS, PlainWeight, cold, numbers
from torch import Tensor

from quantgate_kernels.cpu.library import load_functions
from quantgate_kernels.cpu.panel_products import PanelProducts
from quantgate_kernels.cpu.panels import pack
from quantgate_kernels.reference.linear import multiply, stored_form
from quantgate_kernels.roofline import Width, Work
from quantgate_kernels.types import Int8DynamicWeight, stored_bytes

pytestmark = pytest.mark.benchmark(max_time=0.25, min_rounds=10, warmup=True, disable_gc=True)


def by_panels(x: Tensor, weight: PlainWeight) -> list[Callable[[], object]]:
    products = PanelProducts(load_functions()[torch.bfloat16])
    return [partial(products.linear, x, panels) for panels in cold(pack(weight), stored_bytes(weight))]


def by_torch(x: Tensor, weight: PlainWeight) -> list[Callable[[], object]]:
    return [
        partial(multiply, x, stored, {}) for stored in cold(stored_form(weight, torch.bfloat16), stored_bytes(weight))
    ]


BY = {"panels": by_panels, TORCH: by_torch}


def product_work(weight: PlainWeight, rows: int) -> Work:
    outputs, inputs = weight.shape
    width: Width = "int8" if isinstance(weight, Int8DynamicWeight) else "16-bit"
    return Work(stored_bytes(weight) + 2 * rows * inputs, {width: 2.0 * rows * inputs * outputs})


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("layer", LINEAR_LAYERS)
@pytest.mark.parametrize("form", FORMS)
def test_product(form: str, layer: str, rows: int, by: str, beside_bound: BesideBound) -> None:
    weight = FORMS[form](*LINEAR_LAYERS[layer])
    x = numbers(rows, weight.shape[1])
    beside_bound.measure(f"{form}, {layer}, {rows} rows", by, product_work(weight, rows), BY[by](x, weight))
