"""A step's sequences as the tensors that the decoder and the kernels read."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from quantgate_engine.executor.base import ScheduledSequence
from quantgate_kernels.types import AttentionBatch


def build_batch(
    sequences: Sequence[ScheduledSequence], block_size: int, device: torch.device
) -> tuple[Tensor, AttentionBatch]:
    """-> (token ids int64 [T], the attention batch), rows in the order of `sequences`."""
    tokens: list[int] = []
    positions: list[int] = []
    slots: list[int] = []
    starts, contexts = [0], []
    for sequence in sequences:
        end = sequence.start_position + len(sequence.token_ids)
        tokens.extend(sequence.token_ids)
        positions.extend(range(sequence.start_position, end))
        slots.extend(
            sequence.block_table[position // block_size] * block_size + position % block_size
            for position in range(sequence.start_position, end)
        )
        starts.append(len(tokens))
        contexts.append(end)
    widest = max(len(sequence.block_table) for sequence in sequences)
    tables = [[*sequence.block_table, *(0,) * (widest - len(sequence.block_table))] for sequence in sequences]
    batch = AttentionBatch(
        query_starts=torch.tensor(starts, dtype=torch.int32, device=device),
        context_lens=torch.tensor(contexts, dtype=torch.int32, device=device),
        block_tables=torch.tensor(tables, dtype=torch.int32, device=device),
        slots=torch.tensor(slots, dtype=torch.int64, device=device),
        positions=torch.tensor(positions, dtype=torch.int64, device=device),
        query_starts_host=tuple(starts),
        context_lens_host=tuple(contexts),
        block_size=block_size,
    )
    return torch.tensor(tokens, dtype=torch.int64, device=device), batch
