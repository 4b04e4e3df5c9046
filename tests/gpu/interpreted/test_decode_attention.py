"""Decode attention and the merge of its splits against float64, and what must not change a bit of them."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
import torch
from tests.gpu.float64_attention import attention_of_row
from tests.gpu.paged_cases import Contexts, paged_step, queries, random_contexts
from torch import Tensor

from quantgate_kernels.gpu.decode_attention import decode_attention
from quantgate_kernels.gpu.launch_table import LARGEST_GROUP
from quantgate_kernels.types import AttentionBatch, KVLayer

BLOCK = 16
SPLIT = 128
TOLERANCE = {torch.float32: 2e-6, torch.float16: 1.5e-3, torch.bfloat16: 1.2e-2}
"""Of numbers around 1: twice the rounding of shares and results to the dtype, four of them for float32."""


def attend(
    q: Tensor,
    step: tuple[KVLayer, AttentionBatch],
    window: int | None = None,
    split: int = SPLIT,
    sequences: Sequence[int] | None = None,
    longest: int | None = None,
    architecture: str = "sm90",
) -> Tensor:
    cache, batch = step
    chosen = torch.tensor(list(range(batch.num_sequences) if sequences is None else sequences), dtype=torch.int32)
    attended = torch.full_like(q, 99.0)
    longest = longest or max(batch.context_lens_host)
    scale = q.shape[-1] ** -0.5
    decode_attention(q, cache, batch, chosen, longest, split, scale, window, attended, architecture)
    return attended


def expected(q: Tensor, contexts: Contexts, window: int | None = None) -> Tensor:
    scale = q.shape[-1] ** -0.5
    seen = slice(None if window is None else -window, None)
    pairs = zip(q, contexts.keys, contexts.values, strict=True)
    return torch.stack([attention_of_row(row, keys[seen], values[seen], scale) for row, keys, values in pairs])


def check(
    lengths: Sequence[int], group: int, head_dim: int, q_dtype: torch.dtype, kv_dtype: torch.dtype, **how
) -> None:
    window = how.get("window")
    contexts = random_contexts(lengths, 2, head_dim, kv_dtype)
    q = queries(len(lengths), 2 * group, head_dim, q_dtype)
    attended = attend(q, paged_step(contexts, [1] * len(lengths), BLOCK), **how)
    torch.testing.assert_close(
        attended.double(), expected(q, contexts, window), atol=TOLERANCE[q_dtype], rtol=TOLERANCE[q_dtype]
    )


@pytest.mark.parametrize("head_dim", [64, 80, 96, 128])
@pytest.mark.parametrize("group", [1, 3, 4, 8, LARGEST_GROUP])
@pytest.mark.parametrize("kv_dtype", [torch.float16, torch.int8], ids=["16-bit", "int8"])
def test_every_shape_of_heads(group: int, head_dim: int, kv_dtype: torch.dtype) -> None:
    check([1, 131], group, head_dim, torch.float16, kv_dtype)


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
    check([5, 300], 3, 64, q_dtype, kv_dtype)


@pytest.mark.parametrize("length", [1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 255, 256, 257])
def test_lengths_around_the_edges_of_blocks_tiles_and_splits(length: int) -> None:
    check([length], 4, 64, torch.float32, torch.float32)


def test_more_splits_than_are_merged_at_once() -> None:
    """2200 tokens are 18 splits, which the merge takes by eights."""
    check([2200], 4, 64, torch.float32, torch.float32)


@pytest.mark.parametrize("window", [1, 16, 63, 64, 100, 200, 300])
@pytest.mark.parametrize("kv_dtype", [torch.float32, torch.int8], ids=["float32", "int8"])
def test_a_window_hides_what_is_before_it(window: int, kv_dtype: torch.dtype) -> None:
    check([40, 290], 3, 64, torch.float32, kv_dtype, window=window)


@pytest.mark.parametrize("architecture", ["sm80", "gfx942"])
def test_the_tiles_of_other_architectures(architecture: str) -> None:
    check([200], 4, 128, torch.float16, torch.float16, architecture=architecture)
    check([200], 4, 128, torch.float16, torch.int8, architecture=architecture)


def test_small_scales_stay_within_float16() -> None:
    """Values of a millionth: shares times their scales would be nothing in float16."""
    contexts = random_contexts([70], 2, 64, torch.int8)
    codes, scales = contexts.stored[0][1], contexts.stored[0][3] * 1e-5
    stored = (*contexts.stored[0][:3], scales)
    small = Contexts(contexts.keys, [codes.double() * scales.double()[..., None]], [stored])
    q = queries(1, 6, 64, torch.float16)
    cache, batch = paged_step(small, [1], BLOCK)
    attended = torch.empty(1, 6, 64, dtype=torch.float32)
    decode_attention(q, cache, batch, torch.zeros(1, dtype=torch.int32), 70, SPLIT, 0.125, None, attended, "sm90")
    torch.testing.assert_close(attended.double() * 1e5, expected(q, small) * 1e5, atol=1.5e-3, rtol=1.5e-3)


@pytest.mark.parametrize("kv_dtype", [torch.float16, torch.int8], ids=["16-bit", "int8"])
@pytest.mark.parametrize("window", [None, 90])
def test_where_blocks_lie_and_what_others_hold_changes_no_bit(kv_dtype: torch.dtype, window: int | None) -> None:
    lengths = [3, 140, 64]
    contexts = random_contexts(lengths, 2, 80, kv_dtype)
    q = queries(3, 6, 80, torch.float16)
    plain = attend(q, paged_step(contexts, [1, 1, 1], BLOCK), window)
    shuffled = random.Random(1).sample(range(30), 14)
    assert torch.equal(plain, attend(q, paged_step(contexts, [1, 1, 1], BLOCK, shuffled, poison=True), window))


@pytest.mark.parametrize("kv_dtype", [torch.float16, torch.int8], ids=["16-bit", "int8"])
@pytest.mark.parametrize("window", [None, 150])
def test_alone_or_in_a_batch_is_the_same_with_fixed_splits(kv_dtype: torch.dtype, window: int | None) -> None:
    lengths = [20, 300, 129]
    contexts = random_contexts(lengths, 2, 64, kv_dtype)
    q = queries(3, 8, 64, torch.float16)
    together = attend(q, paged_step(contexts, [1, 1, 1], BLOCK), window)
    for index in range(3):
        one = Contexts(
            contexts.keys[index : index + 1], contexts.values[index : index + 1], contexts.stored[index:][:1]
        )
        assert torch.equal(attend(q[index : index + 1], paged_step(one, [1], BLOCK), window)[0], together[index])


def test_only_chosen_rows_are_written() -> None:
    """Among sequences with several new rows, and beside entries without any context, which pad captured graphs."""
    contexts = random_contexts([10, 20, 33], 2, 64, torch.float32)
    cache, batch = paged_step(contexts, [1, 4, 1], BLOCK)
    batch.context_lens[0] = 0
    q = queries(6, 4, 64, torch.float32)
    attended = attend(q, (cache, batch), sequences=[2, 0], longest=500)
    assert (attended[:5] == 99).all()
    alone = attention_of_row(q[5], contexts.keys[2], contexts.values[2], 0.125)
    torch.testing.assert_close(attended[5].double(), alone, atol=2e-6, rtol=2e-6)


def test_a_broken_value_is_seen() -> None:
    contexts = random_contexts([70], 2, 64, torch.int8)
    cache, batch = paged_step(contexts, [1], BLOCK)
    assert cache.value_scales is not None
    cache.value_scales.view(-1, 2)[40, 1] = float("nan")
    attended = attend(queries(1, 4, 64, torch.float16), (cache, batch))
    assert attended[0, :2].isfinite().all()
    assert attended[0, 2:].isnan().all()


def test_reads_outside_the_cache_raise() -> None:
    contexts = random_contexts([40], 2, 64, torch.float32)
    cache, batch = paged_step(contexts, [1], BLOCK)
    batch.block_tables[0, 2] = cache.keys.shape[0]
    with pytest.raises(Exception, match="load out of bounds"):
        attend(queries(1, 4, 64, torch.float32), (cache, batch))
