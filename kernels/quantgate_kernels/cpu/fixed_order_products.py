"""Products whose every result is summed in one fixed order, for each form in which weights are stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

import torch
from torch import Tensor

from quantgate_kernels.cpu.library import Functions
from quantgate_kernels.types import DenseWeight, Int4GroupWeight, Int8ChannelWeight, Int8GroupWeight, StoredWeight

PATH = "cpp, fixed order"


def _multiply_dense(functions: Functions, x: Tensor, weight: DenseWeight, out: Tensor) -> None:
    functions.fixed_order_dense(
        x.data_ptr(), weight.weight.data_ptr(), out.data_ptr(), *_sizes(x, out), torch.get_num_threads()
    )


def _multiply_int8(functions: Functions, x: Tensor, weight: Int8ChannelWeight, out: Tensor) -> None:
    functions.fixed_order_int8(
        x.data_ptr(), weight.codes.data_ptr(), weight.scales.data_ptr(), out.data_ptr(),
        *_sizes(x, out), torch.get_num_threads(),
    )  # fmt: skip


def _multiply_int4(functions: Functions, x: Tensor, weight: Int4GroupWeight, out: Tensor) -> None:
    _multiply_groups(functions.fixed_order_int4, x, weight.packed, weight, out)


def _multiply_int8_groups(functions: Functions, x: Tensor, weight: Int8GroupWeight, out: Tensor) -> None:
    _multiply_groups(functions.fixed_order_int8_groups, x, weight.codes, weight, out)


def _multiply_groups(
    product: Callable[..., None], x: Tensor, codes: Tensor, weight: Int4GroupWeight | Int8GroupWeight, out: Tensor
) -> None:
    zeros = None if weight.zeros is None else weight.zeros.data_ptr()
    product(
        x.data_ptr(), codes.data_ptr(), weight.scales.data_ptr(), zeros, out.data_ptr(),
        int(_has_half_scales(weight)), *_sizes(x, out), weight.group_size, torch.get_num_threads(),
    )  # fmt: skip


FORMS: dict[type, Callable[[Functions, Tensor, Any, Tensor], None]] = {
    DenseWeight: _multiply_dense,
    Int8ChannelWeight: _multiply_int8,
    Int8GroupWeight: _multiply_int8_groups,
    Int4GroupWeight: _multiply_int4,
}


class FixedOrderProducts:
    """functions: the compiled kernels by the dtype of activations. A product that they do not read is None."""

    def __init__(self, functions: Mapping[torch.dtype, Functions]) -> None:
        self._functions = functions

    def linear(self, x: Tensor, weight: StoredWeight) -> Tensor | None:
        """x [T, in] -> [T, out] in x's dtype; every form multiplies by what it is defined to stand for."""
        functions = self._reading(x, weight)
        if functions is None:
            return None
        out = torch.empty((x.shape[0], weight.shape[0]), dtype=x.dtype)
        FORMS[type(weight)](functions, x, weight, out)
        return out

    def logits(self, x: Tensor, weight: DenseWeight) -> Tensor | None:
        """x [R, hidden] -> float32 [R, vocab], summed in float32 and not rounded."""
        functions = self._reading(x, weight)
        if functions is None:
            return None
        out = torch.empty((x.shape[0], weight.shape[0]), dtype=torch.float32)
        functions.fixed_order_logits(
            x.data_ptr(), weight.weight.data_ptr(), out.data_ptr(), *_sizes(x, out), torch.get_num_threads()
        )
        return out

    def _reading(self, x: Tensor, weight: StoredWeight) -> Functions | None:
        """The functions that read these operands: all dense in memory, and what floats of one dtype.

        Scales of groups may be float16 beside any dtype.
        """
        if type(weight) not in FORMS:
            return None
        free = weight.scales if _has_half_scales(weight) else None
        for operand in (x, *weight.tensors()):
            fits = operand is free or not operand.is_floating_point() or operand.dtype == x.dtype
            if not fits or not operand.is_contiguous():
                return None
        return self._functions.get(x.dtype)


def _has_half_scales(weight: StoredWeight) -> TypeGuard[Int4GroupWeight | Int8GroupWeight]:
    return isinstance(weight, Int4GroupWeight | Int8GroupWeight) and weight.scales.dtype == torch.float16


def _sizes(x: Tensor, out: Tensor) -> tuple[int, int, int]:
    """Rows, inputs, outputs."""
    return x.shape[0], x.shape[1], out.shape[1]
