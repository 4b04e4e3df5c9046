"""Paged causal attention in plain torch: one padded product for all decodes, one for each prefill chunk.

What depends on the batch alone (which slots to gather, what to mask) is planned once per step and reused by every
layer. Keys and values are gathered slot by slot and never read outside what a sequence sees of its own context:
positions that pad a short context point at the first slot that it sees, so that whatever stands in free or half-filled
blocks cannot reach a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from quantgate_kernels.reference.paged_rows import arithmetic_over, gather_keys, gather_values, path_over
from quantgate_kernels.types import AttentionBatch, KVLayer

PATH = "torch.scaled_dot_product_attention"

# A context shorter than this share of the longest in its group starts a group of its own: padding is read and masked.
SHORTEST_SHARE_OF_A_GROUP = 0.5


@dataclass(frozen=True, slots=True)
class DecodeGroup:
    """Sequences with one new token each, what they see padded to `length` tokens.

    rows: int64 [S] in the step's rows; slots: int64 [S * length]; mask: [S, 1, 1, length], 0 or -inf.
    """

    rows: Tensor
    slots: Tensor
    mask: Tensor
    length: int


@dataclass(frozen=True, slots=True)
class PrefillChunk:
    """One sequence with several new tokens: rows start..stop, slots int64 [L] seen by any, mask [stop - start, L].

    The mask is None where the chunk is the whole context and sees all before it, which plain causal attention covers.
    """

    start: int
    stop: int
    slots: Tensor
    mask: Tensor | None


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    decode: tuple[DecodeGroup, ...]
    prefill: tuple[PrefillChunk, ...]


def plan_attention(batch: AttentionBatch, dtype: torch.dtype, window: int | None = None) -> AttentionPlan:
    """Work out a step's gathers and masks; `dtype` is that of the queries, which additive masks must share."""
    starts, contexts = batch.query_starts_host, batch.context_lens_host
    decoding = [index for index in range(batch.num_sequences) if starts[index + 1] - starts[index] == 1]
    groups = _groups_of_like_length(
        decoding, [context if window is None else min(context, window) for context in contexts]
    )
    return AttentionPlan(
        decode=tuple(_decode_group(batch, group, dtype, window) for group in groups),
        prefill=_plan_prefill(batch, dtype, window),
    )


def _plan_prefill(batch: AttentionBatch, dtype: torch.dtype, window: int | None = None) -> tuple[PrefillChunk, ...]:
    """The part of the plan that concerns sequences with several new tokens."""
    starts = batch.query_starts_host
    chunks = [index for index in range(batch.num_sequences) if starts[index + 1] - starts[index] > 1]
    return tuple(_prefill_chunk(batch, index, dtype, window) for index in chunks)


def attend(q: Tensor, cache: KVLayer, plan: AttentionPlan, scale: float, paths: dict[str, str]) -> Tensor:
    """q [T, heads, head_dim] -> [T, heads * head_dim]; notes in `paths` what computed it."""
    rows, heads, head_dim = q.shape
    output = torch.empty(rows, heads * head_dim, dtype=q.dtype, device=q.device)
    for group in plan.decode:
        paths["attention"] = path_over(cache, PATH)
        output[group.rows] = _attend_decode(q.index_select(0, group.rows), cache, group, scale).to(q.dtype)
    _attend_prefills(q, cache, plan.prefill, scale, output, paths)
    return output


def _attend_prefills(
    q: Tensor, cache: KVLayer, chunks: Sequence[PrefillChunk], scale: float, output: Tensor, paths: dict[str, str]
) -> None:
    """Fills the chunks' rows of `output` [T, heads * head_dim] and leaves the others."""
    for chunk in chunks:
        paths["attention"] = path_over(cache, PATH)
        output[chunk.start : chunk.stop] = _attend_prefill(q[chunk.start : chunk.stop], cache, chunk, scale)


def _groups_of_like_length(sequences: list[int], lengths: Sequence[int]) -> list[list[int]]:
    groups: list[list[int]] = []
    for index in sorted(sequences, key=lambda sequence: -lengths[sequence]):
        if groups and lengths[index] >= SHORTEST_SHARE_OF_A_GROUP * lengths[groups[-1][0]]:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def _decode_group(batch: AttentionBatch, sequences: list[int], dtype: torch.dtype, window: int | None) -> DecodeGroup:
    device = batch.block_tables.device
    chosen = torch.tensor(sequences, device=device)
    contexts = batch.context_lens.index_select(0, chosen).to(torch.int64).unsqueeze(1)
    seen = contexts if window is None else contexts.clamp(max=window)
    length = max(batch.context_lens_host[index] for index in sequences)
    if window is not None:
        length = min(length, window)
    offsets = torch.arange(length, device=device).unsqueeze(0)
    outside = offsets >= seen
    positions = contexts - seen + offsets.expand_as(outside).masked_fill(outside, 0)
    tables = batch.block_tables.index_select(0, chosen).to(torch.int64)
    slots = tables.gather(1, positions // batch.block_size) * batch.block_size + positions % batch.block_size
    mask = torch.zeros(outside.shape, dtype=dtype, device=device).masked_fill_(outside, float("-inf"))
    rows = torch.tensor([batch.query_starts_host[index] for index in sequences], device=device)
    return DecodeGroup(rows=rows, slots=slots.reshape(-1), mask=mask[:, None, None, :], length=length)


def _prefill_chunk(batch: AttentionBatch, index: int, dtype: torch.dtype, window: int | None) -> PrefillChunk:
    start, stop = batch.query_starts_host[index], batch.query_starts_host[index + 1]
    length = batch.context_lens_host[index]
    first_query = length - (stop - start)
    first_key = 0 if window is None else max(0, first_query - window + 1)
    device = batch.block_tables.device
    keys = torch.arange(first_key, length, device=device)
    table = batch.block_tables[index].to(torch.int64)
    slots = table.index_select(0, keys // batch.block_size) * batch.block_size + keys % batch.block_size
    hides_the_past = window is not None and window < length
    if first_query == 0 and not hides_the_past:
        return PrefillChunk(start=start, stop=stop, slots=slots, mask=None)
    queries = torch.arange(first_query, length, device=device).unsqueeze(1)
    hidden = keys > queries
    if window is not None:
        hidden |= keys <= queries - window
    mask = torch.zeros(hidden.shape, dtype=dtype, device=device).masked_fill_(hidden, float("-inf"))
    return PrefillChunk(start=start, stop=stop, slots=slots, mask=mask)


def _attend_decode(q: Tensor, cache: KVLayer, group: DecodeGroup, scale: float) -> Tensor:
    """The query heads that share a key head take the place of query positions, so that no key is repeated."""
    sequences, heads, head_dim = q.shape
    kv_heads, dtype = cache.keys.shape[2], arithmetic_over(cache, q.dtype)
    seen = (sequences, group.length, kv_heads, head_dim)
    keys = gather_keys(cache, group.slots, dtype).view(seen).transpose(1, 2)
    values = gather_values(cache, group.slots, dtype).view(seen).transpose(1, 2)
    grouped = q.to(dtype).view(sequences, kv_heads, heads // kv_heads, head_dim)
    attended = F.scaled_dot_product_attention(grouped, keys, values, attn_mask=group.mask.to(dtype), scale=scale)
    return attended.reshape(sequences, heads * head_dim)


def _attend_prefill(q: Tensor, cache: KVLayer, chunk: PrefillChunk, scale: float) -> Tensor:
    """Key heads stand in the batch dimension and are broadcast, not copied, over the query heads that share them."""
    rows, heads, head_dim = q.shape
    kv_heads, dtype = cache.keys.shape[2], arithmetic_over(cache, q.dtype)
    shared = (kv_heads, heads // kv_heads, chunk.slots.numel(), head_dim)
    keys = gather_keys(cache, chunk.slots, dtype).transpose(0, 1).unsqueeze(1).expand(shared)
    values = gather_values(cache, chunk.slots, dtype).transpose(0, 1).unsqueeze(1).expand(shared)
    grouped = q.to(dtype).view(rows, kv_heads, heads // kv_heads, head_dim).permute(1, 2, 0, 3)
    mask = None if chunk.mask is None else chunk.mask.to(dtype)
    attended = F.scaled_dot_product_attention(
        grouped, keys, values, attn_mask=mask, is_causal=mask is None, scale=scale
    )
    return attended.permute(2, 0, 1, 3).reshape(rows, heads * head_dim)
