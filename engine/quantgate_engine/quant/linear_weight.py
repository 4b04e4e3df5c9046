"""From codes that no kernel knows to the weight that kernels multiply by: the same numbers, exactly."""

from __future__ import annotations

import torch
from torch import Tensor

from quantgate_engine.quant.grouped_codes import GroupedCodes, middle_code
from quantgate_engine.quant.precision import Precision
from quantgate_kernels.int4_packing import ZERO_CODE, pack_groups
from quantgate_kernels.types import (
    Int8ChannelWeight,
    Int8DynamicWeight,
    Int8GroupWeight,
    LinearPart,
    OrderedWeight,
    ReorderedWeight,
)

FEW_BITS = 4
"""Codes of 2 and 3 bits are kept in 4: fewer bytes would be saved than time lost."""


def has_kernels(weight: GroupedCodes) -> bool:
    """Whether `linear_weight` takes it: groups must be of one size, and of pairs of inputs where codes are packed."""
    sizes = torch.bincount(weight.groups(), minlength=weight.scales.shape[1])
    return bool((sizes == sizes[0]).all()) and (weight.bits > FEW_BITS or int(sizes[0]) % 2 == 0)


def linear_weight(weight: GroupedCodes, precision: Precision, *, int8_activations: bool = False) -> LinearPart:
    """int8_activations: of the products. The weight must then be symmetric, of 8 bits and one scale per output.

    Inputs whose groups do not stand in order are put in order, and products read activations in that order.
    """
    order = None if weight.group_of_input is None else torch.argsort(weight.group_of_input, stable=True)
    codes = weight.codes if order is None else weight.codes[:, order]
    if weight.bits <= FEW_BITS:
        ordered: OrderedWeight = _int4(codes, weight)
    elif int8_activations:
        ordered = Int8DynamicWeight(_signed(codes, weight.bits), weight.scales[:, 0].float())
    else:
        ordered = _int8(codes, weight, precision)
    return ordered if order is None else ReorderedWeight(ordered, order.to(torch.int32))


def _int4(codes: Tensor, weight: GroupedCodes) -> OrderedWeight:
    """A symmetric grid's middle moves to that of 4 bits, which changes no difference of code and zero."""
    if weight.is_symmetric:
        moved = codes + (ZERO_CODE - middle_code(weight.bits))
        return pack_groups(moved, weight.scales, weight.group_size)
    return pack_groups(codes, weight.scales, weight.group_size, weight.zeros)


def _int8(codes: Tensor, weight: GroupedCodes, precision: Precision) -> OrderedWeight:
    scales = weight.scales
    one_group = scales.shape[1] == 1 and weight.is_symmetric
    if one_group and torch.equal(scales.to(precision.compute).to(scales.dtype), scales):
        return Int8ChannelWeight(_signed(codes, weight.bits), scales[:, 0].to(precision.compute))
    zeros = None if weight.is_symmetric else _signed(weight.zeros, weight.bits)
    return Int8GroupWeight(_signed(codes, weight.bits), scales, weight.group_size, zeros)


def _signed(codes: Tensor, bits: int) -> Tensor:
    """uint8 -> int8, the middle code at 0."""
    return (codes.to(torch.int16) - middle_code(bits)).to(torch.int8)
