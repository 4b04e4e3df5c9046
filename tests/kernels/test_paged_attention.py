"""Paged attention against plain attention over each sequence's own keys, written without pages or batches."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from quantgate_kernels.kernel_set import KernelSet
from quantgate_kernels.types import AttentionBatch, KVLayer

BLOCK_SIZE = 4
HEAD_DIM = 8


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


def paged_step(
    case: Case, keys: list[Tensor], values: list[Tensor], block_order: list[int], fill: float, kv_heads: int
) -> tuple[KVLayer, AttentionBatch]:
    """Lays the sequences' keys and values out in blocks taken from `block_order`; all other slots hold `fill`."""
    cache = KVLayer(*(torch.full((len(block_order), BLOCK_SIZE, kv_heads, HEAD_DIM), fill) for _ in range(2)))
    free = iter(block_order)
    tables, slots, positions, starts = [], [], [], [0]
    for (past, new), key, value in zip(case.sequences, keys, values, strict=True):
        table = [next(free) for _ in range(-(-(past + new) // BLOCK_SIZE))]
        own = [table[position // BLOCK_SIZE] * BLOCK_SIZE + position % BLOCK_SIZE for position in range(past + new)]
        cache.keys.view(-1, kv_heads, HEAD_DIM)[own] = key
        cache.values.view(-1, kv_heads, HEAD_DIM)[own] = value
        tables.append(table)
        slots += own[past:]
        positions += range(past, past + new)
        starts.append(starts[-1] + new)
    widest = max(map(len, tables))
    contexts = tuple(past + new for past, new in case.sequences)
    batch = AttentionBatch(
        query_starts=torch.tensor(starts, dtype=torch.int32),
        context_lens=torch.tensor(contexts, dtype=torch.int32),
        block_tables=torch.tensor([table + [0] * (widest - len(table)) for table in tables], dtype=torch.int32),
        slots=torch.tensor(slots),
        positions=torch.tensor(positions),
        query_starts_host=tuple(starts),
        context_lens_host=contexts,
        block_size=BLOCK_SIZE,
    )
    return cache, batch


def plain_attention(case: Case, q: Tensor, keys: list[Tensor], values: list[Tensor], scale: float) -> Tensor:
    """Row by row and head by head in float64: softmax(q . k * scale) v over the keys up to the row's own position."""
    heads, kv_heads = q.shape[1], keys[0].shape[1]
    rows = []
    start = 0
    for (past, new), key, value in zip(case.sequences, keys, values, strict=True):
        for offset in range(new):
            visible = past + offset + 1
            for head in range(heads):
                shared = head // (heads // kv_heads)
                scores = key[:visible, shared].double() @ q[start + offset, head].double() * scale
                rows.append(scores.softmax(0) @ value[:visible, shared].double())
        start += new
    return torch.stack(rows).view(start, heads * HEAD_DIM)


def random_inputs(case: Case, heads: int, kv_heads: int) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    generator = torch.Generator().manual_seed(3)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    rows = sum(new for _, new in case.sequences)
    keys = [draw(past + new, kv_heads, HEAD_DIM) for past, new in case.sequences]
    values = [draw(past + new, kv_heads, HEAD_DIM) for past, new in case.sequences]
    return draw(rows, heads, HEAD_DIM), keys, values


@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 4), (6, 2), (4, 1)], ids=["group 1", "group 3", "group 4"])
@pytest.mark.parametrize("name", CASES)
def test_equals_plain_attention(name: str, heads: int, kv_heads: int, kernels: KernelSet) -> None:
    case = CASES[name]
    q, keys, values = random_inputs(case, heads, kv_heads)
    cache, batch = paged_step(case, keys, values, list(range(40)), fill=0.0, kv_heads=kv_heads)
    attended = kernels.attention(q, cache, batch, scale=0.3)
    expected = plain_attention(case, q, keys, values, scale=0.3)
    torch.testing.assert_close(attended.double(), expected, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_which_blocks_hold_a_sequence_changes_no_bit(name: str, kernels: KernelSet) -> None:
    case = CASES[name]
    q, keys, values = random_inputs(case, heads=6, kv_heads=2)
    shuffled = random.Random(7).sample(range(40), 40)
    in_order = paged_step(case, keys, values, list(range(40)), fill=0.0, kv_heads=2)
    out_of_order = paged_step(case, keys, values, shuffled, fill=0.0, kv_heads=2)
    expected = kernels.attention(q, *in_order, scale=0.3)
    assert torch.equal(kernels.attention(q, *out_of_order, scale=0.3), expected)


@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), 1e30])
@pytest.mark.parametrize("name", CASES)
def test_garbage_in_free_slots_changes_no_bit(name: str, garbage: float, kernels: KernelSet) -> None:
    """Free blocks, and the slots of a sequence's last block that it has not reached, may hold anything.

    Block 0, which pads the block tables, is left free here.
    """
    case = CASES[name]
    q, keys, values = random_inputs(case, heads=6, kv_heads=2)
    order = [*range(1, 40), 0]
    clean = kernels.attention(q, *paged_step(case, keys, values, order, 0.0, kv_heads=2), scale=0.3)
    dirty = kernels.attention(q, *paged_step(case, keys, values, order, garbage, kv_heads=2), scale=0.3)
    assert torch.equal(dirty, clean)


def test_a_second_batch_is_planned_anew(kernels: KernelSet) -> None:
    for name in ("prefill", "mixed"):
        q, keys, values = random_inputs(CASES[name], heads=4, kv_heads=2)
        cache, batch = paged_step(CASES[name], keys, values, list(range(40)), fill=0.0, kv_heads=2)
        expected = plain_attention(CASES[name], q, keys, values, scale=0.5)
        attended = kernels.attention(q, cache, batch, scale=0.5)
        torch.testing.assert_close(attended.double(), expected, atol=2e-6, rtol=1e-5)
