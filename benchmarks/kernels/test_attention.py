"""Attention of decodes and of prompts over a paged cache, in 16 bits and in INT8: in place, and by torch.

Bound: keys and values that are seen are read once; four operations for each number of a query and each token it sees,
on 16-bit numbers, since codes are widened before they are multiplied.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from benchmarks.kernels.beside_bounds import TORCH, BesideBound
from benchmarks.kernels.shapes import HEAD_DIM, HEADS, KV_HEADS, bytes_of, cold, kv_layer, numbers, paged_batch
from torch import Tensor

from quantgate_kernels.cpu.library import load_functions
from quantgate_kernels.reference.kernels import ReferenceKernels
from quantgate_kernels.roofline import Work
from quantgate_kernels.types import AttentionBatch, KVLayer

pytestmark = pytest.mark.benchmark(max_time=0.4, min_rounds=5, warmup=True, disable_gc=True)

SCALE = HEAD_DIM**-0.5
DECODES = {"1 x 512": ((511, 1),), "16 x 512": ((511, 1),) * 16, "16 x 4096": ((4095, 1),) * 16}
PROMPTS = {"512 new": ((0, 512),), "512 new after 3584": ((3584, 512),), "4 x 128 new": ((0, 128),) * 4}
STEPS = {
    **{f"decode, {name}": sequences for name, sequences in DECODES.items()},
    **{f"prefill, {name}": sequences for name, sequences in PROMPTS.items()},
    "mixed, 256 new and 15 x 512": ((0, 256), *((511, 1),) * 15),
}


def in_place(q: Tensor, batch: AttentionBatch) -> Callable[[KVLayer], object]:
    attention, output = load_functions()[torch.bfloat16].attention, torch.empty(q.shape[0], HEADS * HEAD_DIM).bfloat16()

    def attend(cache: KVLayer) -> Tensor:
        sides = (cache.keys, cache.values, cache.key_scales, cache.value_scales)
        attention(
            q.data_ptr(), *(None if side is None else side.data_ptr() for side in sides),
            batch.query_starts.data_ptr(), batch.context_lens.data_ptr(), batch.block_tables.data_ptr(),
            output.data_ptr(), batch.num_sequences, HEADS, KV_HEADS, HEAD_DIM, batch.block_size,
            batch.block_tables.shape[1], 0, SCALE, torch.get_num_threads(),
        )  # fmt: skip
        return output

    return attend


def by_torch(q: Tensor, batch: AttentionBatch) -> Callable[[KVLayer], object]:
    """What is seen is gathered and given to scaled_dot_product_attention; the plan of the step is made once."""
    kernels = ReferenceKernels()
    return lambda cache: kernels.attention(q, cache, batch, SCALE)


BY = {"in place": in_place, TORCH: by_torch}


def attention_work(batch: AttentionBatch, cache: KVLayer) -> Work:
    starts, contexts = batch.query_starts_host, batch.context_lens_host
    pairs = 0.0
    for index, context in enumerate(contexts):
        new = starts[index + 1] - starts[index]
        pairs += new * (context - new) + new * (new + 1) / 2
    slots = cache.keys.shape[0] * cache.keys.shape[1]
    return Work(sum(contexts) * bytes_of(cache) / slots, {"16-bit": 4.0 * HEADS * HEAD_DIM * pairs})


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("stored", ["bfloat16", "int8"])
def test_attention(stored: str, step: str, by: str, beside_bound: BesideBound) -> None:
    batch = paged_batch(STEPS[step])
    cache = kv_layer(batch, stored_as_int8=stored == "int8")
    q = numbers(batch.num_rows, HEADS, HEAD_DIM)
    attend = BY[by](q, batch)
    calls = [partial(attend, copy) for copy in cold(cache, bytes_of(cache))]
    beside_bound.measure(f"attention, {stored} KV, {step}", by, attention_work(batch, cache), calls)


@pytest.mark.parametrize("tokens", [128, 512])
def test_attention_over_contiguous_keys_and_values(tokens: int, beside_bound: BesideBound) -> None:
    """What torch's operator takes where nothing has to be gathered: a prompt alone."""
    queries, keys, values = (numbers(1, heads, tokens, HEAD_DIM, seed=heads) for heads in (HEADS, KV_HEADS, KV_HEADS))
    batch = paged_batch([(0, tokens)])
    call = partial(F.scaled_dot_product_attention, queries, keys, values, is_causal=True, enable_gqa=True)
    work = attention_work(batch, kv_layer(batch, stored_as_int8=False))
    beside_bound.measure(f"attention, contiguous, prefill, {tokens} new", TORCH, work, [call])
