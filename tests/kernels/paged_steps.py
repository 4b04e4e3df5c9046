"""Steps over a paged cache for tests, and the attention that they stand for, written without pages or batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from tests.attention_batches import batch_of
from torch import Tensor

from quantgate_kernels.types import AttentionBatch, KVLayer

BLOCK_SIZE = 4


@dataclass(frozen=True)
class Case:
    """Sequences as (tokens in the cache before this step, new tokens)."""

    sequences: tuple[tuple[int, int], ...]


CASES = {
    "prefill": Case(((0, 7),)),
    "prefills": Case(((0, 7), (0, 4), (0, 2))),
    "chunk after a prefix": Case(((5, 6),)),
    "decodes of unlike length": Case(((0, 1), (3, 1), (17, 1), (40, 1), (41, 1))),
    "mixed": Case(((12, 1), (0, 9), (3, 1), (8, 8), (30, 1), (1, 2))),
}
NUM_BLOCKS = 40
"""Enough for each case."""


@dataclass(frozen=True)
class Inputs:
    """q [T, heads, head_dim]; keys and values of each sequence [tokens, kv_heads, head_dim]."""

    q: Tensor
    keys: list[Tensor]
    values: list[Tensor]


def random_inputs(case: Case, heads: int, kv_heads: int, head_dim: int = 8) -> Inputs:
    generator = torch.Generator().manual_seed(3)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    rows = sum(new for _, new in case.sequences)
    keys = [draw(past + new, kv_heads, head_dim) for past, new in case.sequences]
    values = [draw(past + new, kv_heads, head_dim) for past, new in case.sequences]
    return Inputs(draw(rows, heads, head_dim), keys, values)


def paged_step(
    case: Case, inputs: Inputs, block_order: Sequence[int], fill: float = 0.0
) -> tuple[KVLayer, AttentionBatch]:
    """Lays the sequences' keys and values out in blocks taken from `block_order`; all other slots hold `fill`."""
    batch, own_slots = paged_batch(case, block_order)
    row = inputs.keys[0].shape[1:]
    cache = KVLayer(*(torch.full((len(block_order), BLOCK_SIZE, *row), fill) for _ in range(2)))
    for slots, key, value in zip(own_slots, inputs.keys, inputs.values, strict=True):
        cache.keys.view(-1, *row)[slots] = key
        cache.values.view(-1, *row)[slots] = value
    return cache, batch


def paged_batch(case: Case, block_order: Sequence[int]) -> tuple[AttentionBatch, list[list[int]]]:
    """-> (the batch, the slots of each sequence's tokens); blocks are taken from `block_order`."""
    free = iter(block_order)
    tables, every = [], []
    for past, new in case.sequences:
        table = [next(free) for _ in range(-(-(past + new) // BLOCK_SIZE))]
        tables.append(table)
        every.append([table[at // BLOCK_SIZE] * BLOCK_SIZE + at % BLOCK_SIZE for at in range(past + new)])
    contexts, rows = [past + new for past, new in case.sequences], [new for _, new in case.sequences]
    return batch_of(tables, contexts, rows, BLOCK_SIZE), every


def plain_attention(case: Case, inputs: Inputs, scale: float, window: int | None = None) -> Tensor:
    """Row by row and head by head in float64: softmax(q . k * scale) v over the keys up to the row's own position.

    Of these, the last `window` alone where it is set.
    """
    q, heads, kv_heads = inputs.q.double(), inputs.q.shape[1], inputs.keys[0].shape[1]
    rows = []
    start = 0
    for (past, new), key, value in zip(case.sequences, inputs.keys, inputs.values, strict=True):
        for offset in range(new):
            stop = past + offset + 1
            seen = slice(0 if window is None else max(0, stop - window), stop)
            for head in range(heads):
                shared = head // (heads // kv_heads)
                scores = key[seen, shared].double() @ q[start + offset, head] * scale
                rows.append(scores.softmax(0) @ value[seen, shared].double())
        start += new
    return torch.stack(rows).view(start, -1)
