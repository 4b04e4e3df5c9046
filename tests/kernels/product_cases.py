"""Weights of every stored form, and activations that provoke what products get wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from quantgate_kernels.int4_packing import pack_groups
from quantgate_kernels.types import (
    DenseWeight,
    Int4GroupWeight,
    Int8ChannelWeight,
    Int8DynamicWeight,
    Int8GroupWeight,
)


def draw(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def draw_codes(low: int, high: int, *shape: int, seed: int = 2) -> Tensor:
    """Integers in low..high, both ends among them wherever there is room."""
    codes = torch.randint(low, high + 1, shape, generator=torch.Generator().manual_seed(seed))
    codes.view(-1)[0], codes.view(-1)[-1] = high, low
    return codes


def dense_weight(outputs: int, inputs: int) -> DenseWeight:
    return DenseWeight(draw(outputs, inputs).bfloat16())


def int8_weight(outputs: int, inputs: int) -> Int8ChannelWeight:
    codes = draw_codes(-127, 127, outputs, inputs).to(torch.int8)
    return Int8ChannelWeight(codes, draw(outputs, seed=3).mul(0.02).bfloat16())


def int4_weight(outputs: int, inputs: int, group_size: int) -> Int4GroupWeight:
    codes = draw_codes(0, 15, outputs, inputs).to(torch.uint8)
    scales = draw(outputs, inputs // group_size, seed=3).mul(0.2).bfloat16()
    return pack_groups(codes, scales, group_size)


def asymmetric_int4_weight(
    outputs: int, inputs: int, group_size: int, scale_dtype: torch.dtype = torch.bfloat16
) -> Int4GroupWeight:
    """As checkpoints of AWQ and GPTQ are: scales in float16, mostly, and zeros of every value."""
    symmetric = int4_weight(outputs, inputs, group_size)
    zeros = draw_codes(0, 15, *symmetric.scales.shape, seed=4).to(torch.uint8)
    return replace(symmetric, scales=symmetric.scales.to(scale_dtype), zeros=zeros)


def int8_group_weight(
    outputs: int,
    inputs: int,
    group_size: int,
    scale_dtype: torch.dtype = torch.bfloat16,
    *,
    asymmetric: bool = False,
) -> Int8GroupWeight:
    codes = draw_codes(-128, 127, outputs, inputs).to(torch.int8)
    scales = draw(outputs, inputs // group_size, seed=3).mul(0.02).to(scale_dtype)
    zeros = draw_codes(-128, 127, *scales.shape, seed=4).to(torch.int8) if asymmetric else None
    return Int8GroupWeight(codes, scales, group_size, zeros)


def int8_dynamic_weight(outputs: int, inputs: int) -> Int8DynamicWeight:
    codes = draw_codes(-127, 127, outputs, inputs).to(torch.int8)
    return Int8DynamicWeight(codes, draw(outputs, seed=3).mul(0.02))


SixteenBitWeight = DenseWeight | Int8ChannelWeight | Int8GroupWeight | Int4GroupWeight


@dataclass(frozen=True)
class SixteenBitForm:
    """A stored form that multiplies 16-bit activations as they are, and the inputs that it can have."""

    make: Callable[[int, int], SixteenBitWeight]
    inputs: tuple[int, ...]


def _int4(group_size: int) -> Callable[[int, int], Int4GroupWeight]:
    return lambda outputs, inputs: int4_weight(outputs, inputs, group_size)


def _asymmetric_int4(group_size: int, scale_dtype: torch.dtype) -> Callable[[int, int], Int4GroupWeight]:
    return lambda outputs, inputs: asymmetric_int4_weight(outputs, inputs, group_size, scale_dtype)


def _half_scaled_int4(outputs: int, inputs: int) -> Int4GroupWeight:
    weight = int4_weight(outputs, inputs, 64)
    return replace(weight, scales=draw(*weight.scales.shape, seed=3).mul(0.2).half())


ODD_INPUTS = (1, 2, 3, 31, 64, 66, 576)
SIXTEEN_BIT_FORMS = {
    "bfloat16": SixteenBitForm(dense_weight, ODD_INPUTS),
    "int8": SixteenBitForm(int8_weight, ODD_INPUTS),
    "int4-g32": SixteenBitForm(_int4(32), (32, 96, 576)),
    "int4-g64": SixteenBitForm(_int4(64), (64, 192, 576)),
    "int4-g128": SixteenBitForm(_int4(128), (128, 384)),
    "int4-g64, float16 scales": SixteenBitForm(_half_scaled_int4, (64, 192)),
    "int4-g64-asym": SixteenBitForm(_asymmetric_int4(64, torch.bfloat16), (64, 576)),
    "int4-g128-asym, float16 scales": SixteenBitForm(_asymmetric_int4(128, torch.float16), (128, 384)),
    "int4-asym, one group": SixteenBitForm(
        lambda outputs, inputs: asymmetric_int4_weight(outputs, inputs, inputs), (2, 66, 100, 576)
    ),
    "int8-g32": SixteenBitForm(lambda outputs, inputs: int8_group_weight(outputs, inputs, 32), (32, 576)),
    "int8-g64, float16 scales": SixteenBitForm(
        lambda outputs, inputs: int8_group_weight(outputs, inputs, 64, torch.float16), (64, 192)
    ),
    "int8-g8-asym": SixteenBitForm(
        lambda outputs, inputs: int8_group_weight(outputs, inputs, 8, asymmetric=True), (8, 200, 384)
    ),
    "int8-asym, float16 scales, one group": SixteenBitForm(
        lambda outputs, inputs: int8_group_weight(outputs, inputs, inputs, torch.float16, asymmetric=True),
        (1, 3, 66, 576),
    ),
}
ROWS = (1, 2, 3, 5, 7, 8, 12, 13, 16, 24, 31, 64, 300)
OUTPUTS = (1, 31, 32, 33, 70)


def _one_outlier(rows: int, inputs: int) -> Tensor:
    """As the massive activations of real models, and larger: all else is lost beside it."""
    x = draw(rows, inputs, seed=6)
    x[:, inputs // 2] = 1e30
    return x


def _alternating(first: float, second: float, count: int) -> Tensor:
    return torch.tensor([first, second]).repeat(count // 2 + 1)[:count]


def _cancelling(rows: int, inputs: int) -> Tensor:
    """Large numbers of alternating sign: the sum is small, and every step towards it large."""
    signs = _alternating(1.0, -1.0, inputs)
    return signs * (1e4 + draw(rows, inputs, seed=7) * 50)


def _growing(rows: int, inputs: int) -> Tensor:
    """Powers of two over the whole range of what can be multiplied and summed."""
    return torch.linspace(-60, 60, inputs).exp2().expand(rows, inputs) * draw(rows, inputs, seed=8).sign()


ADVERSARIAL: dict[str, Callable[[int, int], Tensor]] = {
    "zeros": torch.zeros,
    "negative zeros": lambda rows, inputs: torch.full((rows, inputs), -0.0),
    "one outlier": _one_outlier,
    "cancelling": _cancelling,
    "growing": _growing,
    "subnormal": lambda rows, inputs: draw(rows, inputs, seed=9) * 1e-39,
    "tiny beside large": lambda rows, inputs: draw(rows, inputs, seed=10) * _alternating(1e-39, 1e20, inputs),
}


def cancelling_weight(outputs: int, inputs: int) -> DenseWeight:
    """Neighbours are alike, so that activations of alternating sign cancel."""
    return DenseWeight(draw(outputs, (inputs + 1) // 2).repeat_interleave(2, dim=1)[:, :inputs].bfloat16().contiguous())
