"""`AttentionBatch`es of sequences that lie in given blocks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch

from quantgate_kernels.types import AttentionBatch


def batch_of(
    tables: Sequence[list[int]], contexts: Sequence[int], new: Sequence[int], block_size: int
) -> AttentionBatch:
    """tables: the blocks of each sequence; contexts: its tokens, of which the last `new` are the step's rows."""
    starts, widest = tuple(accumulate(new, initial=0)), max(map(len, tables))
    positions = [range(length - rows, length) for length, rows in zip(contexts, new, strict=True)]
    slots = [
        table[position // block_size] * block_size + position % block_size
        for table, own in zip(tables, positions, strict=True)
        for position in own
    ]
    return AttentionBatch(
        query_starts=torch.tensor(starts, dtype=torch.int32),
        context_lens=torch.tensor(contexts, dtype=torch.int32),
        block_tables=torch.tensor([table + [0] * (widest - len(table)) for table in tables], dtype=torch.int32),
        slots=torch.tensor(slots),
        positions=torch.tensor([position for own in positions for position in own]),
        query_starts_host=starts,
        context_lens_host=tuple(contexts),
        block_size=block_size,
    )
