"""A step's rows as rows that stand alone."""

from __future__ import annotations

import torch
from torch import Tensor

from quantgate_kernels.reference.paged_rows import gather_keys, gather_values
from quantgate_kernels.types import AttentionBatch, KVLayer


def rows_of(x: Tensor) -> list[Tensor]:
    """[T, n] -> T times [1, n], each in memory of its own: matrix products may choose their kernel by alignment."""
    return [row.clone() for row in torch.split(x, 1)]


def as_decodes(batch: AttentionBatch) -> AttentionBatch:
    """The same rows, each as the one new token of a sequence whose context ends with it."""
    rows = batch.num_rows
    if rows == batch.num_sequences:
        return batch
    device = batch.positions.device
    contexts = (batch.positions + 1).to(torch.int32)
    return AttentionBatch(
        query_starts=torch.arange(rows + 1, dtype=torch.int32, device=device),
        context_lens=contexts,
        block_tables=batch.block_tables.repeat_interleave(batch.query_starts.diff(), dim=0),
        slots=batch.slots,
        positions=batch.positions,
        query_starts_host=tuple(range(rows + 1)),
        context_lens_host=tuple(contexts.tolist()),
        block_size=batch.block_size,
    )


def plan_seen_slots(batch: AttentionBatch, _dtype: torch.dtype, window: int | None) -> tuple[Tensor, ...]:
    """For each row the slots of the keys that it sees, in the order of their positions: int64 [tokens]."""
    seen: list[Tensor] = []
    starts, size = batch.query_starts_host, batch.block_size
    for sequence, context in enumerate(batch.context_lens_host):
        positions = torch.arange(context, device=batch.block_tables.device)
        table = batch.block_tables[sequence].to(torch.int64)
        slots = table.index_select(0, positions // size) * size + positions % size
        new = starts[sequence + 1] - starts[sequence]
        ends = range(context - new + 1, context + 1)
        seen.extend(slots[0 if window is None else max(0, end - window) : end] for end in ends)
    return tuple(seen)


def attend_alone(q: Tensor, cache: KVLayer, slots: Tensor, scale: float) -> Tensor:
    """One row's attention in float32: q [1, heads, head_dim] -> [1, heads * head_dim].

    By products and sums of torch, not by its fused attention, whose last bits change with the number of threads.
    """
    _, heads, head_dim = q.shape
    keys, values = (gather(cache, slots, torch.float32).float() for gather in (gather_keys, gather_values))
    kv_heads = keys.shape[1]
    grouped = q.float().view(kv_heads, heads // kv_heads, 1, head_dim)
    # [kv_heads, 1, tokens, head_dim] and [kv_heads, 1, head_dim, tokens]: sums run along the last dimension.
    scores = (grouped * keys.transpose(0, 1).unsqueeze(1)).sum(-1) * scale
    weights = scores.softmax(-1).unsqueeze(2)
    attended = (weights * values.permute(1, 2, 0).contiguous().unsqueeze(1)).sum(-1)
    return attended.reshape(1, heads * head_dim).to(q.dtype)
