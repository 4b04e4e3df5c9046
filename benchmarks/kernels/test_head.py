"""Logits of the rows that draw a token: the product in panels, and torch's product.

Bound: the head and the rows are read once; two operations for each weight and row, on 16-bit numbers. Torch's product
rounds its logits to 16 bits; the other does not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from benchmarks.kernels.beside_bounds import TORCH, BesideBound
from benchmarks.kernels.shapes import HIDDEN, VOCABULARY, cold, dense, numbers
from torch import Tensor

from quantgate_kernels.cpu.library import load_functions
from quantgate_kernels.cpu.panel_products import PanelProducts
from quantgate_kernels.cpu.panels import pack
from quantgate_kernels.reference.linear import multiply, stored_form
from quantgate_kernels.roofline import Work
from quantgate_kernels.types import DenseWeight, stored_bytes

pytestmark = pytest.mark.benchmark(max_time=0.4, min_rounds=5, warmup=True, disable_gc=True)


def by_panels(x: Tensor, head: DenseWeight) -> list[Callable[[], object]]:
    products = PanelProducts(load_functions()[torch.bfloat16])
    return [partial(products.logits, x, panels) for panels in cold(pack(head), stored_bytes(head))]


def by_torch(x: Tensor, head: DenseWeight) -> list[Callable[[], object]]:
    # Packed, as torch reads weights fastest: a slower baseline would flatter the other.
    return [partial(multiply, x, stored, {}) for stored in cold(stored_form(head, torch.bfloat16), stored_bytes(head))]


BY = {"panels": by_panels, TORCH: by_torch}


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("rows", [1, 4, 16, 64])
def test_head(rows: int, by: str, beside_bound: BesideBound) -> None:
    head, x = dense(VOCABULARY, HIDDEN), numbers(rows, HIDDEN)
    work = Work(stored_bytes(head) + 2 * rows * HIDDEN, {"16-bit": 2.0 * rows * HIDDEN * VOCABULARY})
    beside_bound.measure(f"head, {rows} rows", by, work, BY[by](x, head))
