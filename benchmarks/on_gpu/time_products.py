"""Products of 16-bit rows with the weights of a layer of Llama-3-8B, beside torch's product in float16.

Bound: the weight and the rows are read once and the product written; two operations for each weight and row, on int8
numbers where activations are quantized too (whose quantization is part of the time) and else on 16-bit ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from benchmarks.on_gpu.llama import GROUP_SIZE, PRODUCTS
from benchmarks.on_gpu.names import FEW_ROWS, W4A16, W8A8, W8A16, shape_name
from benchmarks.on_gpu.place import Place
from benchmarks.on_gpu.timed import Call, Case
from torch import Tensor

from quantgate_kernels.gpu.dequantize import dequantize
from quantgate_kernels.gpu.products import QuantizedProducts
from quantgate_kernels.gpu.quantize_tokens import quantize_tokens
from quantgate_kernels.reference.int8_rows import quantize_rows
from quantgate_kernels.roofline import Width, Work
from quantgate_kernels.types import Int8DynamicWeight
from quantgate_kernels.word_weight import WORD_BITS, WordWeight

MANY_ROWS = (64, 256, 2048)
LARGEST = "gate_up"
"""The product that is measured with many rows too."""

WEIGHT_BYTES: dict[str, Callable[[int, int], int]] = {
    W4A16: lambda outputs, inputs: outputs * inputs // 2 + 2 * outputs * inputs // GROUP_SIZE,
    W8A16: lambda outputs, inputs: outputs * inputs + 2 * outputs,
    W8A8: lambda outputs, inputs: outputs * inputs + 4 * outputs,
}


def product_cases(few: Sequence[int] = FEW_ROWS, many: Sequence[int] = MANY_ROWS) -> Iterator[Case]:
    for kernel in (W4A16, W8A16, W8A8):
        for product, (outputs, inputs) in PRODUCTS.items():
            chosen = few if kernel == W4A16 else (few[0], few[-1])
            for rows in (*chosen, *(many if product == LARGEST else ())):
                work = product_work(kernel, outputs, inputs, rows)
                yield Case(kernel, shape_name(product, rows), work, partial(_product, kernel, outputs, inputs, rows))


def product_work(kernel: str, outputs: int, inputs: int, rows: int) -> Work:
    width: Width = "int8" if kernel == W8A8 else "16-bit"
    moved = WEIGHT_BYTES[kernel](outputs, inputs) + 2 * rows * (inputs + outputs)
    return Work(moved, {width: 2.0 * rows * inputs * outputs})


def _product(kernel: str, outputs: int, inputs: int, rows: int, place: Place) -> tuple[Call, list[Call]]:
    device = place.torch_device
    x = torch.randn(rows, inputs, dtype=torch.float16, device=device)
    weight = _codes(outputs, inputs, device) if kernel == W8A8 else _words(outputs, inputs, kernel == W4A16, device)
    products = QuantizedProducts(place.kernel_device, {}, deterministic=False)
    dense = torch.randn(outputs, inputs, dtype=torch.float16, device=device)
    return partial(products.multiply, x, weight), [partial(F.linear, x, dense)]


def _words(outputs: int, inputs: int, four_bits: bool, device: torch.device) -> WordWeight:
    bits, group = (4, GROUP_SIZE) if four_bits else (8, None)
    shape = (outputs, inputs * bits // WORD_BITS)
    words = torch.randint(-(2**31), 2**31 - 1, shape, dtype=torch.int32, device=device)
    scales = torch.rand((outputs,) if group is None else (inputs // group, outputs), device=device) * 0.01
    return WordWeight(words, scales.half(), inputs, group, bits)


def _codes(outputs: int, inputs: int, device: torch.device) -> Int8DynamicWeight:
    codes = torch.randint(-127, 128, (outputs, inputs), dtype=torch.int8, device=device)
    return Int8DynamicWeight(codes, torch.rand(outputs, device=device) * 0.01)


def conversion_cases(rows: Sequence[int] = (16, 2048)) -> Iterator[Case]:
    """What products of many rows, and of codes with codes, do first."""
    outputs, inputs = PRODUCTS[LARGEST]
    for kernel in (W4A16, W8A16):
        moved = WEIGHT_BYTES[kernel](outputs, inputs) + 2 * outputs * inputs
        bits = "4 bits" if kernel == W4A16 else "8 bits"
        yield Case("dequantize", f"{LARGEST}, {bits}", Work(moved, {}), partial(_dequantize, kernel == W4A16))
    for _, inputs in (PRODUCTS[LARGEST], PRODUCTS["down"]):
        for count in rows:
            work = Work(count * (3 * inputs + 4), {})
            yield Case("quantize tokens", f"{count} x {inputs}", work, partial(_quantize, count, inputs))


def _dequantize(four_bits: bool, place: Place) -> tuple[Call, list[Call]]:
    return partial(dequantize, _words(*PRODUCTS[LARGEST], four_bits, place.torch_device), torch.float16), []


def _quantize(rows: int, inputs: int, place: Place) -> tuple[Call, list[Call]]:
    x = torch.randn(rows, inputs, dtype=torch.float16, device=place.torch_device)

    def by_torch() -> tuple[Tensor, Tensor]:
        return quantize_rows(x.float())

    return partial(quantize_tokens, x), [by_torch]
