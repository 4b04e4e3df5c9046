"""bfloat16 in Triton's interpreter, which multiplies its bits as integers and cuts digits off where it should round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

Builder = interpreter.InterpreterBuilder
Handle = interpreter.TensorHandle


def widened(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def rounded(numbers: np.ndarray) -> np.ndarray:
    """float32 -> the bits of the nearest bfloat16, ties to even; a NaN stays one."""
    numbers = np.asarray(numbers, dtype=np.float32)
    bits = numbers.view(np.uint32)
    nearest = ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)
    return np.where(np.isnan(numbers), np.uint16(0x7FC0), nearest)


def install() -> None:
    """Constants, casts, arithmetic, sums and products; what else kernels do (loads, stores) moves bits alone."""
    Builder.get_bf16 = _constant
    for name, repaired in (
        ("cast_impl", _cast),
        ("create_fp_to_fp", _round),
        ("binary_op", _binary),
        ("unary_op", _unary),
        ("create_dot", _dot),
    ):
        setattr(Builder, name, repaired(getattr(Builder, name)))
    interpreter.ReduceOps.sum = _sum(interpreter.ReduceOps.sum)


def _is_bfloat16(handle: Any) -> bool:
    return handle.dtype.scalar == tl.bfloat16 and handle.data.dtype == np.uint16


def _widen(handle: Any) -> Any:
    return Handle(widened(handle.data), tl.float32) if _is_bfloat16(handle) else handle


def _constant(_self: Any, value: float) -> Any:
    """Triton 3.6 has none."""
    return Handle(rounded(np.array([value])), tl.bfloat16)


def _cast(original: Callable) -> Callable:
    def cast(self: Any, source: Any, target: Any) -> Any:
        if target.scalar == tl.bfloat16 and source.dtype.scalar != tl.bfloat16:
            return Handle(rounded(source.data), tl.bfloat16)
        if _is_bfloat16(source) and target.scalar != tl.bfloat16:
            return _widen(source) if target.scalar == tl.float32 else original(self, _widen(source), target)
        return original(self, source, target)

    return cast


def _round(original: Callable) -> Callable:
    def convert(self: Any, source: Any, target: Any, rounding: Any) -> Any:
        if target.scalar == tl.bfloat16 and source.data.dtype.kind == "f":
            return Handle(rounded(source.data), tl.bfloat16)
        return original(self, source, target, rounding)

    return convert


def _binary(original: Callable) -> Callable:
    def binary(self: Any, left: Any, right: Any, operation: Callable) -> Any:
        if not (_is_bfloat16(left) and _is_bfloat16(right)):
            return original(self, left, right, operation)
        result = operation(widened(left.data), widened(right.data))
        return Handle(result if result.dtype == np.bool_ else rounded(result), left.dtype.scalar)

    return binary


def _unary(original: Callable) -> Callable:
    def unary(self: Any, argument: Any, operation: Callable) -> Any:
        if not _is_bfloat16(argument):
            return original(self, argument, operation)
        return Handle(rounded(operation(widened(argument.data))), tl.bfloat16)

    return unary


def _dot(original: Callable) -> Callable:
    def dot(self: Any, left: Any, right: Any, *others: Any) -> Any:
        return original(self, _widen(left), _widen(right), *others)

    return dot


def _sum(original: Callable) -> Callable:
    def total(self: Any, operand: Any) -> Any:
        if operand.dtype != tl.bfloat16:
            return original(self, operand)
        result = np.sum(widened(operand.handle.data), axis=self.axis, keepdims=self.keep_dims)
        return self.to_tensor(rounded(np.asarray(result)), operand.dtype)

    return total
