"""x @ weight.T for each stored form. The path is chosen by the number of rows from small committed tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from quantgate_kernels.bnb import int8 as bnb_int8
from quantgate_kernels.bnb import nf4 as bnb_nf4
from quantgate_kernels.bnb.weights import BnbInt8Weight, BnbNf4TiledWeight, BnbNf4Weight
from quantgate_kernels.int4_packing import dequantize_groups
from quantgate_kernels.reference import dense, int4, int8, int8_dynamic, int8_groups
from quantgate_kernels.types import (
    DensePackedWeight,
    DenseWeight,
    Int4GroupWeight,
    Int4TiledWeight,
    Int8ChannelWeight,
    Int8DynamicWeight,
    Int8GroupWeight,
    LinearWeight,
    OrderedWeight,
    ReorderedWeight,
    StackedWeight,
    StoredWeight,
)


@dataclass(frozen=True, slots=True)
class RowPath:
    """One way to multiply, for batches of at most `max_rows` rows (None: any number) that it `supports`."""

    max_rows: int | None
    path: str
    multiply: Callable[[Tensor, Any], Tensor]
    supports: Callable[[Tensor], bool] = lambda _: True

    def takes(self, x: Tensor) -> bool:
        return (self.max_rows is None or x.shape[0] <= self.max_rows) and self.supports(x)


# Best of 80 calls on 2 cores of an AVX512-BF16 CPU, torch 2.13, weight 3072 x 576, microseconds:
#   rows                        1     4     8    16    32    48    64   128
#   bfloat16, plain            91   107   145   206   335   458   585  1141
#   bfloat16, packed           44
#   int8, aten op              48    96   191   379   755  1135  1509
#   int8, convert codes       209   229   267   329   510   588   716  1244
#   int4, aten op              50    87   169   331   723   981  1311  2689
#   int4, dequantize tiles                      707   868  1012  1185  2240
ROW_PATHS: dict[type, tuple[RowPath, ...]] = {
    DenseWeight: (RowPath(None, "torch.linear", dense.multiply_plain),),
    DensePackedWeight: (RowPath(None, "mkldnn._linear_pointwise", dense.multiply_packed),),
    Int8ChannelWeight: (
        RowPath(8, "aten._weight_int8pack_mm", int8.multiply_packed, int8.has_packed_product),
        RowPath(None, "convert codes, torch.linear, scale", int8.multiply_converted),
    ),
    Int8DynamicWeight: (
        RowPath(None, "quantize rows, torch._int_mm", int8_dynamic.multiply_in_int32, int8_dynamic.has_int32_product),
        RowPath(None, "quantize rows, exact float32 products in chunks", int8_dynamic.multiply_in_chunks),
    ),
    Int8GroupWeight: (RowPath(None, "dequantize groups, torch.linear", int8_groups.multiply_dequantized),),
    Int4TiledWeight: (
        RowPath(48, "aten._weight_int4pack_mm_for_cpu", int4.multiply_tiled, int4.reads_tiles),
        RowPath(None, "dequantize tiles, torch.bmm", int4.multiply_dequantized_tiles),
    ),
    Int4GroupWeight: (RowPath(None, "dequantize groups, torch.linear", int4.multiply_dequantized_groups),),
    BnbInt8Weight: (RowPath(None, "bitsandbytes int8_mixed_scaled_mm", bnb_int8.multiply),),
    BnbNf4Weight: (RowPath(None, "bitsandbytes gemm_4bit", bnb_nf4.multiply),),
    BnbNf4TiledWeight: (RowPath(None, "bitsandbytes gemv_4bit", bnb_nf4.multiply_tiled),),
}


def multiply(x: Tensor, weight: StoredWeight, paths: dict[str, str]) -> Tensor:
    """x [T, in] -> [T, out]; notes in `paths` which way was taken for this form and class of row counts."""
    for candidate in ROW_PATHS[type(weight)]:
        if candidate.takes(x):
            rows = "" if candidate.max_rows is None else f".rows<={candidate.max_rows}"
            paths[f"linear.{weight.label}{rows}"] = candidate.path
            return candidate.multiply(x, weight)
    raise AssertionError(f"no path multiplies {type(weight).__name__}; the last row of a table must take any batch")


def stored_form(weight: OrderedWeight, compute: torch.dtype) -> OrderedWeight:
    """The one form in which `weight` is kept: the order that torch's fastest product reads, where it has one."""
    if isinstance(weight, DenseWeight) and dense.has_packed_product(weight):
        return dense.pack(weight)
    if isinstance(weight, Int4GroupWeight) and int4.has_tiled_product(weight):
        return int4.tile(weight)
    if isinstance(weight, BnbNf4Weight) and bnb_nf4.has_tiled_product(weight, compute):
        return bnb_nf4.tile(weight)
    return weight


def check_order(weight: ReorderedWeight[OrderedWeight]) -> None:
    """Raises ValueError where the order does not hold each input once: kernels read by it without a look at it."""
    order, inputs = weight.order, weight.shape[1]
    if not order.is_contiguous():
        raise ValueError("the order of a weight's inputs must lie in one piece")
    if not torch.equal(order.sort().values, torch.arange(inputs, dtype=order.dtype, device=order.device)):
        raise ValueError(f"the order of a weight must hold each of its {inputs} inputs once")


def dequantize(weight: LinearWeight) -> Tensor:
    """float32 [out, in]: what the stored form stands for, by definition. Every kernel is checked against it.

    Products with an `Int8DynamicWeight` also round their activations: `reference/int8_dynamic.py` defines them. So do
    those with a `BnbInt8Weight`, but for outliers.
    """
    if isinstance(weight, ReorderedWeight):
        return dequantize(weight.weight).index_select(1, weight.order.argsort())
    if isinstance(weight, StackedWeight):
        return torch.cat([dequantize(part) for part in weight.parts])
    if isinstance(weight, DenseWeight):
        return weight.weight.float()
    if isinstance(weight, DensePackedWeight):
        return dense.unpack(weight).weight.float()
    if isinstance(weight, Int8ChannelWeight | Int8DynamicWeight):
        return weight.codes.float() * weight.scales.float().unsqueeze(1)
    if isinstance(weight, Int8GroupWeight):
        return int8_groups.dequantize(weight, torch.float32)
    if isinstance(weight, BnbInt8Weight):
        return bnb_int8.dequantize(weight)
    if isinstance(weight, BnbNf4Weight):
        return bnb_nf4.dequantize(weight)
    if isinstance(weight, BnbNf4TiledWeight):
        return bnb_nf4.dequantize_tiled(weight)
    groups = int4.untile(weight) if isinstance(weight, Int4TiledWeight) else weight
    return dequantize_groups(groups, torch.float32)
