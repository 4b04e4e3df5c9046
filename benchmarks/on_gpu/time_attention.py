"""Attention of decodes and of prompts at the shape of Llama-3-8B, beside torch's scaled_dot_product_attention.

Bound: keys and values that are seen are read once, queries read and results written; four operations for each number of
a query and each token that it sees, on 16-bit numbers, since codes are widened before they are multiplied. Torch's
operator is given its keys and values side by side, whole heads of their own or shared as they are, whichever is faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from benchmarks.kernels.shapes import paged_batch
from benchmarks.on_gpu.llama import BLOCK_SIZE, HEAD_DIM, HEADS, KV_HEADS
from benchmarks.on_gpu.names import DECODE, KV_FORMS, PREFILL
from benchmarks.on_gpu.place import Place
from benchmarks.on_gpu.timed import Call, Case

from quantgate_kernels.gpu.attention_plan import prefill_tiles
from quantgate_kernels.gpu.decode_attention import decode_attention
from quantgate_kernels.gpu.launch_table import decode_launch, prefill_launch
from quantgate_kernels.gpu.prefill_attention import prefill_attention
from quantgate_kernels.gpu.split_sizes import split_size
from quantgate_kernels.roofline import Work
from quantgate_kernels.types import AttentionBatch, KVLayer

SCALE = HEAD_DIM**-0.5
DECODES = ((1, 4096), (1, 32_768), (16, 2048), (16, 8192), (64, 2048), (128, 1024))
"""(sequences, context)"""
PROMPTS = ((1, 0, 2048), (1, 0, 8192), (4, 0, 1024), (1, 6144, 2048))
"""(sequences, tokens in the cache, new tokens)"""


def attention_cases(
    decodes: Sequence[tuple[int, int]] = DECODES, prompts: Sequence[tuple[int, int, int]] = PROMPTS
) -> Iterator[Case]:
    for int8, stored in KV_FORMS.items():
        for sequences, context in decodes:
            work = attention_work(sequences, context - 1, 1, int8=int8)
            yield Case(DECODE, f"{sequences} x {context}, {stored}", work, partial(_decode, sequences, context, int8))
        for sequences, earlier, new in prompts:
            work = attention_work(sequences, earlier, new, int8=int8)
            name = f"{sequences} x {new} after {earlier}, {stored}"
            yield Case(PREFILL, name, work, partial(_prefill, sequences, earlier, new, int8))


def attention_work(sequences: int, earlier: int, new: int, *, int8: bool) -> Work:
    stored_bytes = HEAD_DIM + 4 if int8 else 2 * HEAD_DIM
    moved = 2 * sequences * (earlier + new) * KV_HEADS * stored_bytes + 2 * 2 * sequences * new * HEADS * HEAD_DIM
    pairs = sequences * (new * earlier + new * (new + 1) / 2)
    return Work(moved, {"16-bit": 4.0 * HEADS * HEAD_DIM * pairs})


def _operands(
    sequences: int, earlier: int, new: int, int8: bool, place: Place
) -> tuple[torch.Tensor, KVLayer, AttentionBatch]:
    batch = place.put(paged_batch([(earlier, new)] * sequences))
    blocks = sequences * -(-(earlier + new) // BLOCK_SIZE)
    q = torch.randn(sequences * new, HEADS, HEAD_DIM, dtype=torch.float16, device=place.torch_device)
    return q, random_cache(blocks, int8=int8, device=place.torch_device), batch


def random_cache(blocks: int, *, int8: bool, device: torch.device) -> KVLayer:
    shape = (blocks, BLOCK_SIZE, KV_HEADS, HEAD_DIM)
    if not int8:
        return KVLayer(*(torch.randn(shape, dtype=torch.float16, device=device) for _ in range(2)))
    codes = (torch.randint(-127, 128, shape, dtype=torch.int8, device=device) for _ in range(2))
    return KVLayer(*codes, *(torch.rand(shape[:3], device=device) * 0.02 for _ in range(2)))


def _decode(sequences: int, context: int, int8: bool, place: Place) -> tuple[Call, list[Call]]:
    q, cache, batch = _operands(sequences, context - 1, 1, int8, place)
    launch = decode_launch(place.architecture, cache.keys.element_size(), HEAD_DIM)
    split = split_size(sequences, KV_HEADS, context, place.processors, launch.num_warps)
    chosen = torch.arange(sequences, dtype=torch.int32, device=place.torch_device)
    call = partial(
        decode_attention, q, cache, batch, chosen, context, split, SCALE, None, torch.empty_like(q), place.architecture
    )
    return call, _by_torch(sequences, context, 1, place.torch_device)


def _prefill(sequences: int, earlier: int, new: int, int8: bool, place: Place) -> tuple[Call, list[Call]]:
    q, cache, batch = _operands(sequences, earlier, new, int8, place)
    launch = prefill_launch(place.architecture, cache.keys.element_size(), HEAD_DIM)
    work = prefill_tiles(batch, launch.rows // (HEADS // KV_HEADS), range(sequences))
    tiles = torch.tensor(work, dtype=torch.int32).to(place.torch_device)
    call = partial(prefill_attention, q, cache, batch, tiles, SCALE, None, torch.empty_like(q), place.architecture)
    # Causal from the end of a longer context, torch has no fast way for.
    return call, _by_torch(sequences, new, new, place.torch_device) if earlier == 0 else []


def _by_torch(sequences: int, tokens: int, new: int, device: torch.device) -> list[Call]:
    def rows(heads: int, count: int) -> torch.Tensor:
        return torch.randn(sequences, heads, count, HEAD_DIM, dtype=torch.float16, device=device)

    q, keys, values = rows(HEADS, new), rows(KV_HEADS, tokens), rows(KV_HEADS, tokens)
    attend = partial(F.scaled_dot_product_attention, is_causal=new > 1, scale=SCALE)
    shared = partial(attend, q, keys, values, enable_gqa=True)
    own = partial(attend, q, rows(HEADS, tokens), rows(HEADS, tokens))
    return [shared, own]
