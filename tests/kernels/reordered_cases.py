"""Weights as GPTQ's act-order leaves them: each input is in any group, and they are stored group by group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from tests.kernels.product_cases import dense_weight, draw, draw_codes, int8_dynamic_weight, int8_weight
from torch import Tensor

from quantgate_kernels.int4_packing import pack_groups
from quantgate_kernels.types import DenseWeight, Int8ChannelWeight, Int8DynamicWeight, OrderedWeight, ReorderedWeight

Reordered = ReorderedWeight[OrderedWeight]


def some_order(inputs: int, seed: int = 4) -> Tensor:
    return torch.randperm(inputs, generator=torch.Generator().manual_seed(seed)).to(torch.int32)


def in_order(weight: OrderedWeight, order: Tensor) -> Reordered:
    """The same weight, whose scales belong to whole channels, with its inputs stored in that order."""
    if isinstance(weight, DenseWeight):
        return ReorderedWeight(DenseWeight(weight.weight[:, order].contiguous()), order)
    assert isinstance(weight, Int8ChannelWeight | Int8DynamicWeight)
    return ReorderedWeight(replace(weight, codes=weight.codes[:, order].contiguous()), order)


def act_order_int4(outputs: int, inputs: int, group_size: int, dtype: torch.dtype) -> tuple[Reordered, Tensor]:
    """With what it stands for in float64 [out, in], for activations as they come: input i has the scale of g_idx[i]."""
    g_idx = (some_order(inputs) // group_size).long()
    codes = draw_codes(0, 15, outputs, inputs).to(torch.uint8)
    scales = draw(outputs, inputs // group_size, seed=3).mul(0.2).to(dtype)
    meant = (codes.double() - 8) * scales.double()[:, g_idx]
    order = g_idx.argsort(stable=True).to(torch.int32)
    return ReorderedWeight(pack_groups(codes[:, order], scales, group_size), order), meant


def _int4(group_size: int) -> Callable[[int, int, torch.dtype], tuple[Reordered, Tensor]]:
    return lambda outputs, inputs, dtype: act_order_int4(outputs, inputs, group_size, dtype)


def _int8(outputs: int, inputs: int, dtype: torch.dtype) -> tuple[Reordered, Tensor]:
    weight = int8_weight(outputs, inputs)
    weight = replace(weight, scales=weight.scales.to(dtype))
    return in_order(weight, some_order(inputs)), weight.codes.double() * weight.scales.double()[:, None]


def _dense(outputs: int, inputs: int, dtype: torch.dtype) -> tuple[Reordered, Tensor]:
    weight = DenseWeight(dense_weight(outputs, inputs).weight.to(dtype))
    return in_order(weight, some_order(inputs)), weight.weight.double()


FORMS: dict[str, Callable[[int, int, torch.dtype], tuple[Reordered, Tensor]]] = {
    "dense": _dense,
    "int8": _int8,
    "int4-g32": _int4(32),
    "int4-g64": _int4(64),
    "int4-g128": _int4(128),
}
"""(outputs, inputs, dtype of the activations) -> (weight, what it stands for): activations stay as they are."""

SIZES = [
    ("dense", 33, 75), ("int8", 70, 66), ("int8", 33, 31), ("int4-g32", 70, 96), ("int4-g32", 64, 576),
    ("int4-g64", 31, 192), ("int4-g128", 33, 384), ("int4-g128", 192, 256),
]  # fmt: skip
"""(form, outputs, inputs): few of them fill a panel or a tile."""

ROWS = (1, 2, 7, 9, 13, 49, 300)


def dynamic_weight(outputs: int, inputs: int) -> tuple[Reordered, Int8DynamicWeight]:
    """A weight for activations that become codes, and the same with its inputs as the activations have them."""
    plain = int8_dynamic_weight(outputs, inputs)
    return in_order(plain, some_order(inputs)), plain
