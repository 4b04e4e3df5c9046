"""All integers of a step in one stretch of memory, so that one transfer brings them to the device."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from quantgate_engine.model.batch_tensors import places_of
from quantgate_kernels.step_rows import StepRows

ALIGNMENT = 64
"""Each part begins at a multiple of so many bytes: kernels that read 16 at a time then find all parts alike."""


class StepShape(NamedTuple):
    """rows: new tokens. table_width: blocks of the longest table. outputs: rows whose hidden states are wanted."""

    sequences: int
    rows: int
    table_width: int
    outputs: int


class StepIntegers(NamedTuple):
    """The parts, as `AttentionBatch` describes them; output_rows: int64 [outputs]."""

    token_ids: Tensor
    positions: Tensor
    slots: Tensor
    output_rows: Tensor
    query_starts: Tensor
    context_lens: Tensor
    block_tables: Tensor


def step_bytes(shape: StepShape) -> int:
    return _ends(shape)[-1]


def parts_of(memory: Tensor, shape: StepShape) -> StepIntegers:
    """Views of `memory`, uint8 with `step_bytes(shape)` or more."""
    ends = _ends(shape)
    parts = []
    for (dtype, count), start in zip(_parts(shape), (0, *ends), strict=False):
        parts.append(memory[start : start + count * dtype.itemsize].view(dtype))
    parts[-1] = parts[-1].view(shape.sequences, shape.table_width)
    return StepIntegers(*parts)


class StepWriter:
    """Writes steps to one area of the host's memory, one after the other.

    Tables are most of what there is to write, and of a batch that decodes most stand there already: a sequence's table
    is the same object until it grows, and is never changed in place.
    """

    def __init__(self, area: Tensor) -> None:
        self.area = area
        self._shape: StepShape | None = None
        self._tables: list[Sequence[int]] = []

    def write(self, shape: StepShape, rows: StepRows, output_rows: Sequence[int]) -> None:
        """Whoever reads the area finds every number of the step there; tables are padded with 0."""
        host = parts_of(self.area, shape)
        _write_lists(host, rows, output_rows)
        if shape != self._shape:
            self._shape, self._tables = shape, [()] * shape.sequences
            host.block_tables.zero_()
        written = self._tables
        tables = host.block_tables.numpy()
        for index, table in enumerate(rows.block_tables):
            if table is not written[index]:
                known = min(len(table), shape.table_width)
                tables[index, :known] = table[:known]
                tables[index, known:] = 0
                written[index] = table


def _write_lists(host: StepIntegers, rows: StepRows, output_rows: Sequence[int]) -> None:
    positions, slots = places_of(rows)
    values = (rows.token_ids, positions, slots, output_rows, rows.query_starts, rows.context_lens)
    for part, numbers in zip(host, values, strict=False):
        part.numpy()[:] = numbers


def _parts(shape: StepShape) -> tuple[tuple[torch.dtype, int], ...]:
    long, short = torch.int64, torch.int32
    return (
        *((long, count) for count in (shape.rows, shape.rows, shape.rows, shape.outputs)),
        *((short, count) for count in (shape.sequences + 1, shape.sequences, shape.sequences * shape.table_width)),
    )


def _ends(shape: StepShape) -> tuple[int, ...]:
    """Where each part ends, with what it is padded by."""
    sizes = (-(-count * dtype.itemsize // ALIGNMENT) * ALIGNMENT for dtype, count in _parts(shape))
    return tuple(itertools.accumulate(sizes))
