"""A step's rows as the tensors that kernels read which compute one operation after another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from quantgate_kernels.step_rows import StepRows
from quantgate_kernels.types import AttentionBatch


def build_batch(rows: StepRows, device: torch.device) -> tuple[Tensor, AttentionBatch]:
    """-> (token ids int64 [T], the attention batch)."""
    positions, slots = places_of(rows)
    widest = max(map(len, rows.block_tables))
    tables = [[*table, *(0,) * (widest - len(table))] for table in rows.block_tables]
    batch = AttentionBatch(
        query_starts=_tensor(rows.query_starts, np.int32, device),
        context_lens=_tensor(rows.context_lens, np.int32, device),
        block_tables=_tensor(tables, np.int32, device),
        slots=_tensor(slots, np.int64, device),
        positions=_tensor(positions, np.int64, device),
        query_starts_host=tuple(rows.query_starts),
        context_lens_host=tuple(rows.context_lens),
        block_size=rows.block_size,
    )
    return _tensor(rows.token_ids, np.int64, device), batch


def places_of(rows: StepRows) -> tuple[list[int], list[int]]:
    """-> (the position of each row in its sequence, the slot where its keys and values go)."""
    size, starts = rows.block_size, rows.query_starts
    positions: list[int] = []
    slots: list[int] = []
    for index, (context, table) in enumerate(zip(rows.context_lens, rows.block_tables, strict=True)):
        new = range(context - (starts[index + 1] - starts[index]), context)
        positions += new
        slots += [table[position // size] * size + position % size for position in new]
    return positions, slots


def _tensor(values: Sequence[object], dtype: type[np.integer], device: torch.device) -> Tensor:
    """By way of numpy, which reads Python's numbers two to four times as fast as torch does."""
    return torch.from_numpy(np.array(values, dtype=dtype)).to(device)
