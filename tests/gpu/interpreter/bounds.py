"""Loads and stores outside the tensors that a kernel was given raise; the interpreter itself touches any memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from triton.runtime import interpreter

Builder = interpreter.InterpreterBuilder
Ranges = list[tuple[int, int]]
"""First address and end of what each tensor of the running kernel covers."""


def install() -> None:
    ranges: Ranges = []
    executor = interpreter.GridExecutor
    take_arguments = executor._init_args_hst

    def taking(self: Any, arguments: Any, named: Any) -> Any:
        taken = take_arguments(self, arguments, named)
        ranges[:] = _covered([*taken[0], *taken[1].values()])
        return taken

    executor._init_args_hst = taking
    Builder.create_masked_load = _checked_load(Builder.create_masked_load, ranges)
    Builder.create_masked_store = _checked_store(Builder.create_masked_store, ranges)


def _covered(arguments: list[Any]) -> Iterator[tuple[int, int]]:
    for tensor in arguments:
        if hasattr(tensor, "data_ptr") and tensor.numel():
            last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
            yield tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size()


def _checked_load(original: Callable, ranges: Ranges) -> Callable:
    def load(self: Any, pointers: Any, mask: Any, *others: Any) -> Any:
        _check("load", pointers, mask, ranges)
        return original(self, pointers, mask, *others)

    return load


def _checked_store(original: Callable, ranges: Ranges) -> Callable:
    def store(self: Any, pointers: Any, value: Any, mask: Any, *others: Any) -> Any:
        _check("store", pointers, mask, ranges)
        return original(self, pointers, value, mask, *others)

    return store


def _check(what: str, pointers: Any, mask: Any, ranges: Ranges) -> None:
    addresses = pointers.data[np.broadcast_to(mask.data, pointers.data.shape)]
    size = np.uint64(max(1, pointers.get_element_ty().primitive_bitwidth // 8))
    inside = np.zeros(addresses.shape, bool)
    for first, end in ranges:
        inside |= (addresses >= np.uint64(first)) & (addresses + size <= np.uint64(end))
    if not inside.all():
        program = interpreter.interpreter_builder.grid_idx
        raise IndexError(f"{what} out of bounds in {int((~inside).sum())} of {inside.size} lanes of program {program}")
