"""Weights of one input as one weight, so that one product multiplies by all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from quantgate_kernels.bnb.weights import BnbInt8Weight, BnbNf4Weight
from quantgate_kernels.int4_packing import ZERO_CODE
from quantgate_kernels.types import (
    DenseWeight,
    Int4GroupWeight,
    Int8ChannelWeight,
    Int8DynamicWeight,
    Int8GroupWeight,
    LinearPart,
    LinearWeight,
    OrderedWeight,
    ReorderedWeight,
    StackedWeight,
)


def stack_outputs(parts: Sequence[LinearPart]) -> LinearWeight:
    """parts [out of each, in] -> one weight of all outputs, of the parts' own kind where they are alike."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if isinstance(first, ReorderedWeight):
        inner = _of_one_order(parts, first.order)
        joined = None if inner is None else _joined(inner)
        return StackedWeight(tuple(parts)) if joined is None else ReorderedWeight(joined, first.order)
    ordered = [part for part in parts if not isinstance(part, ReorderedWeight)]
    joined = _joined(ordered) if len(ordered) == len(parts) else None
    return StackedWeight(tuple(parts)) if joined is None else joined


def _of_one_order(parts: Sequence[LinearPart], order: Tensor) -> list[OrderedWeight] | None:
    inner = [part.weight for part in parts if isinstance(part, ReorderedWeight) and torch.equal(part.order, order)]
    return inner if len(inner) == len(parts) else None


def _joined(parts: Sequence[OrderedWeight]) -> OrderedWeight | None:
    """None where the parts do not lie in the same tensors. Those of these kinds all begin with the outputs."""
    parts = _with_zeros(parts)
    first = parts[0]
    if any(_layout(part) != _layout(first) for part in parts):
        return None
    columns = [torch.cat(tensors) for tensors in zip(*(part.tensors() for part in parts), strict=True)]
    match first:
        case DenseWeight() | Int8ChannelWeight() | Int8DynamicWeight() | BnbInt8Weight() | BnbNf4Weight():
            return type(first)(*columns)
        case Int8GroupWeight() | Int4GroupWeight():
            return type(first)(columns[0], columns[1], first.group_size, columns[2] if len(columns) > 2 else None)
        case _:
            return None


def _layout(weight: OrderedWeight) -> tuple[object, ...]:
    group_size = weight.group_size if isinstance(weight, Int4GroupWeight | Int8GroupWeight) else 0
    return type(weight), group_size, *(tensor.dtype for tensor in weight.tensors())


def _with_zeros(parts: Sequence[OrderedWeight]) -> list[OrderedWeight]:
    """Where some groups have zeros of their own, those of the others are written out too."""
    if all(getattr(part, "zeros", None) is None for part in parts):
        return list(parts)
    return [_zeros_written(part) for part in parts]


def _zeros_written(weight: OrderedWeight) -> OrderedWeight:
    if isinstance(weight, Int4GroupWeight) and weight.zeros is None:
        return replace(weight, zeros=torch.full_like(weight.scales, ZERO_CODE, dtype=torch.uint8))
    if isinstance(weight, Int8GroupWeight) and weight.zeros is None:
        return replace(weight, zeros=torch.zeros_like(weight.scales, dtype=torch.int8))
    return weight
