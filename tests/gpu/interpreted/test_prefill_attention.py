"""Attention of prompts and chunks against float64, and what must not change a bit of it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
import torch
from tests.gpu.float64_attention import attention_of_row
from tests.gpu.paged_cases import Contexts, paged_step, queries, random_contexts
from torch import Tensor

from quantgate_kernels.gpu.attention_plan import prefill_tiles
from quantgate_kernels.gpu.launch_table import LARGEST_GROUP, prefill_launch
from quantgate_kernels.gpu.prefill_attention import prefill_attention
from quantgate_kernels.gpu.rotate_and_write import rotate_and_write
from quantgate_kernels.types import AttentionBatch, KVLayer

BLOCK = 16
TOLERANCE = {torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
"""Of numbers around 1: thrice the rounding to the dtype, of shares, results and of what codes stand for."""


def attend(
    q: Tensor,
    step: tuple[KVLayer, AttentionBatch],
    window: int | None = None,
    sequences: Sequence[int] | None = None,
    architecture: str = "sm90",
) -> Tensor:
    cache, batch = step
    heads, head_dim = q.shape[1:]
    chosen = range(batch.num_sequences) if sequences is None else sequences
    per_tile = prefill_launch(architecture, cache.keys.element_size(), head_dim).rows // (heads // cache.keys.shape[2])
    tiles = torch.tensor(prefill_tiles(batch, per_tile, chosen), dtype=torch.int32)
    attended = torch.full_like(q, 99.0)
    prefill_attention(q, cache, batch, tiles, head_dim**-0.5, window, attended, architecture)
    return attended


def expected(q: Tensor, contexts: Contexts, new: Sequence[int], window: int | None = None) -> Tensor:
    """q: the last `new` tokens of each context."""
    results, rows = [], iter(q)
    for keys, values, count in zip(contexts.keys, contexts.values, new, strict=True):
        for end in range(keys.shape[0] - count + 1, keys.shape[0] + 1):
            seen = slice(0 if window is None else max(0, end - window), end)
            results.append(attention_of_row(next(rows), keys[seen], values[seen], q.shape[-1] ** -0.5))
    return torch.stack(results)


def check(
    lengths: Sequence[int],
    new: Sequence[int],
    group: int,
    head_dim: int,
    q_dtype: torch.dtype,
    kv_dtype: torch.dtype,
    window: int | None = None,
    architecture: str = "sm90",
) -> None:
    contexts = random_contexts(lengths, 2, head_dim, kv_dtype)
    q = queries(sum(new), 2 * group, head_dim, q_dtype)
    attended = attend(q, paged_step(contexts, new, BLOCK), window, architecture=architecture)
    near = TOLERANCE[q_dtype]
    torch.testing.assert_close(attended.double(), expected(q, contexts, new, window), atol=near, rtol=near)


def part(contexts: Contexts, index: int, tokens: int | None = None) -> Contexts:
    """One sequence of them, or its first tokens."""
    first = slice(0, tokens)
    stored = tuple(tensor[first] for tensor in contexts.stored[index])
    return Contexts([contexts.keys[index][first]], [contexts.values[index][first]], [stored])


@pytest.mark.parametrize("head_dim", [64, 80, 96, 128])
@pytest.mark.parametrize("group", [1, 3, 4, 8, LARGEST_GROUP])
@pytest.mark.parametrize("kv_dtype", [torch.float16, torch.int8], ids=["16-bit", "int8"])
def test_every_shape_of_heads(group: int, head_dim: int, kv_dtype: torch.dtype) -> None:
    check([5, 70], [5, 20], group, head_dim, torch.float16, kv_dtype)


@pytest.mark.parametrize(
    ("q_dtype", "kv_dtype"),
    [
        (torch.float32, torch.float32),
        (torch.float32, torch.int8),
        (torch.bfloat16, torch.bfloat16),
        (torch.bfloat16, torch.int8),
    ],
)
def test_every_dtype(q_dtype: torch.dtype, kv_dtype: torch.dtype) -> None:
    check([40, 130], [40, 33], 3, 64, q_dtype, kv_dtype)


@pytest.mark.parametrize("length", [1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 129])
def test_whole_prompts_around_the_edges_of_blocks_and_tiles(length: int) -> None:
    """A group of 4 has 32 rows in a program."""
    check([length], [length], 4, 64, torch.float32, torch.float32)


@pytest.mark.parametrize(("length", "new"), [(64, 1), (65, 1), (65, 64), (128, 33), (200, 2)])
def test_chunks_behind_a_context(length: int, new: int) -> None:
    check([length], [new], 4, 64, torch.float32, torch.float32)


@pytest.mark.parametrize("window", [1, 15, 16, 63, 64, 65, 100, 300])
@pytest.mark.parametrize("kv_dtype", [torch.float32, torch.int8], ids=["float32", "int8"])
def test_a_window_hides_what_is_before_it(window: int, kv_dtype: torch.dtype) -> None:
    check([40, 170], [40, 70], 3, 64, torch.float32, kv_dtype, window=window)


@pytest.mark.parametrize(("architecture", "head_dim"), [("sm80", 128), ("gfx942", 128), ("sm100", 64)])
@pytest.mark.parametrize("kv_dtype", [torch.float16, torch.int8], ids=["16-bit", "int8"])
def test_the_tiles_of_other_architectures(architecture: str, head_dim: int, kv_dtype: torch.dtype) -> None:
    """On sm100 those of narrow heads have 128 tokens."""
    check([200], [130], 4, head_dim, torch.float16, kv_dtype, architecture=architecture)


@pytest.mark.parametrize("kv_dtype", [torch.float16, torch.int8], ids=["16-bit", "int8"])
@pytest.mark.parametrize("window", [None, 50])
def test_where_blocks_lie_and_what_others_hold_changes_no_bit(kv_dtype: torch.dtype, window: int | None) -> None:
    contexts, new = random_contexts([3, 140, 64], 2, 80, kv_dtype), [3, 40, 64]
    q = queries(sum(new), 6, 80, torch.float16)
    plain = attend(q, paged_step(contexts, new, BLOCK), window)
    shuffled = random.Random(1).sample(range(30), 14)
    assert torch.equal(plain, attend(q, paged_step(contexts, new, BLOCK, shuffled, poison=True), window))


@pytest.mark.parametrize("kv_dtype", [torch.float16, torch.int8], ids=["16-bit", "int8"])
@pytest.mark.parametrize("window", [None, 50])
def test_alone_or_in_a_batch_is_the_same(kv_dtype: torch.dtype, window: int | None) -> None:
    new = [20, 50, 1]
    contexts = random_contexts([20, 150, 65], 2, 64, kv_dtype)
    q = queries(sum(new), 8, 64, torch.float16)
    together = attend(q, paged_step(contexts, new, BLOCK), window).split(new)
    for index, rows in enumerate(q.split(new)):
        alone = attend(rows, paged_step(part(contexts, index), new[index : index + 1], BLOCK), window)
        assert torch.equal(alone, together[index])


@pytest.mark.parametrize("kv_dtype", [torch.float16, torch.int8], ids=["16-bit", "int8"])
@pytest.mark.parametrize("window", [None, 50])
def test_in_chunks_or_whole_is_the_same(kv_dtype: torch.dtype, window: int | None) -> None:
    """Chunks that end within blocks and tiles, one of a single token; the cache holds nothing of those to come."""
    contexts, chunks = random_contexts([150], 2, 64, kv_dtype), [37, 1, 64, 48]
    q = queries(150, 6, 64, torch.float16)
    whole = attend(q, paged_step(contexts, [150], BLOCK), window)
    done, pieces = 0, []
    for chunk, rows in zip(chunks, q.split(chunks), strict=True):
        done += chunk
        pieces.append(attend(rows, paged_step(part(contexts, 0, done), [chunk], BLOCK), window))
    assert torch.equal(torch.cat(pieces), whole)


def test_only_chosen_rows_are_written() -> None:
    contexts, new = random_contexts([10, 20, 33], 2, 64, torch.float32), [1, 4, 2]
    q = queries(7, 4, 64, torch.float32)
    attended = attend(q, paged_step(contexts, new, BLOCK), sequences=[1])
    assert (attended[:1] == 99).all()
    assert (attended[5:] == 99).all()
    assert (attended[1:5] != 99).all()


@pytest.mark.parametrize("kv_dtype", [torch.float16, torch.int8], ids=["16-bit", "int8"])
@pytest.mark.parametrize("window", [None, 3])
def test_a_broken_token_is_seen_by_those_after_it_alone(kv_dtype: torch.dtype, window: int | None) -> None:
    """Its neighbours in the tile on both sides, where a window has one behind it, are the bits that they were."""
    contexts, at = random_contexts([70], 2, 64, kv_dtype), 66
    q = queries(70, 4, 64, torch.float16)
    clean = attend(q, paged_step(contexts, [70], BLOCK), window)
    cache, batch = paged_step(contexts, [70], BLOCK)
    write_broken(cache, at, head=1)
    attended = attend(q, (cache, batch), window)
    assert torch.equal(attended[:, :2], clean[:, :2])
    seeing = slice(at, None if window is None else at + window)
    assert attended[seeing, 2:].isnan().all()
    attended[seeing], clean[seeing] = 0, 0
    assert torch.equal(attended, clean)


def write_broken(cache: KVLayer, slot: int, head: int) -> None:
    """The key and the value of a token of which a value overflowed, as they are written to a cache in order."""
    _, _, kv_heads, head_dim = cache.keys.shape
    qkv = torch.ones(1, 3 * kv_heads, head_dim, dtype=torch.float16)
    qkv[0, 2 * kv_heads + head, 5] = float("inf")
    written = KVLayer(*(tensor.clone() for tensor in cache.tensors()))
    angles = torch.ones(1, head_dim), torch.zeros(1, head_dim)
    rotate_and_write(qkv.view(1, -1), *angles, kv_heads, kv_heads, written, torch.tensor([slot]))
    for tensor, changed in zip(cache.tensors(), written.tensors(), strict=True):
        rows, changed_rows = (part.view(-1, *part.shape[2:]) for part in (tensor, changed))
        rows[slot, head] = changed_rows[slot, head]


def test_reads_outside_the_cache_raise() -> None:
    contexts = random_contexts([40], 2, 64, torch.float32)
    cache, batch = paged_step(contexts, [5], BLOCK)
    batch.block_tables[0, 2] = cache.keys.shape[0]
    with pytest.raises(Exception, match="load out of bounds"):
        attend(queries(5, 4, 64, torch.float32), (cache, batch))


def test_the_longest_contexts_of_a_sequence_come_first() -> None:
    _, batch = paged_step(random_contexts([70, 3, 5], 2, 64, torch.float32), [70, 3, 1], BLOCK)
    assert prefill_tiles(batch, 32, (0, 1)) == [(0, 64), (0, 32), (0, 0), (1, 0)]
