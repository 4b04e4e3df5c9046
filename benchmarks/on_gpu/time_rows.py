"""Norm, gate, rope with the write of keys and values, copies of blocks and draws at the shape of Llama-3-8B.

Bound: each operand is read once and each result written; the arithmetic is free beside it, but for draws, whose noise
takes longer than reading the logits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import torch
import torch.nn.functional as F
from benchmarks.on_gpu.llama import BLOCK_SIZE, FFN, HEAD_DIM, HEADS, HIDDEN, KV_HEADS, VOCABULARY
from benchmarks.on_gpu.names import KV_FORMS
from benchmarks.on_gpu.place import Place
from benchmarks.on_gpu.time_attention import random_cache
from benchmarks.on_gpu.timed import Call, Case
from torch import Tensor

from quantgate_kernels.gpu.copy_blocks import copy_blocks
from quantgate_kernels.gpu.draw_tokens import draw_tokens
from quantgate_kernels.gpu.rms_norm import rms_norm
from quantgate_kernels.gpu.rotate_and_write import rotate_and_write
from quantgate_kernels.gpu.silu_and_mul import silu_and_mul
from quantgate_kernels.reference.kernels import ReferenceKernels
from quantgate_kernels.roofline import Work

ROWS = (1, 16, 2048)
COPIES = (16, 256)
DRAWS = (1, 16, 64)


def row_cases(
    rows: Sequence[int] = ROWS, copies: Sequence[int] = COPIES, draws: Sequence[int] = DRAWS
) -> Iterator[Case]:
    width = (HEADS + 2 * KV_HEADS) * HEAD_DIM
    for count in rows:
        yield Case(
            "rms_norm", f"{count} x {HIDDEN}, with a residual", Work(8 * count * HIDDEN, {}), partial(_norm, count)
        )
        yield Case("silu_and_mul", f"{count} x {FFN}", Work(6 * count * FFN, {}), partial(_gate, count))
        for int8, stored in KV_FORMS.items():
            written = 2 * HEADS * HEAD_DIM + 2 * KV_HEADS * (HEAD_DIM + 4 if int8 else 2 * HEAD_DIM)
            work = Work(count * (2 * width + 8 * HEAD_DIM + written), {})
            yield Case("rope and KV write", f"{count} rows, {stored}", work, partial(_rotate, count, int8))
    block = 2 * BLOCK_SIZE * KV_HEADS * HEAD_DIM
    for count in copies:
        yield Case("copy blocks", f"{count} blocks, float16", Work(2 * count * block, {}), partial(_copy, count))
    for count in draws:
        yield Case("draw", f"{count} x {VOCABULARY}", Work(4 * count * VOCABULARY, {}), partial(_draw, count))


def _halves(place: Place, *shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float16, device=place.torch_device)


def _norm(rows: int, place: Place) -> tuple[Call, list[Call]]:
    x, residual, weight = _halves(place, rows, HIDDEN), _halves(place, rows, HIDDEN), _halves(place, HIDDEN)

    def by_torch() -> Tensor:
        return F.rms_norm(x + residual, (HIDDEN,), weight, 1e-5)

    return partial(rms_norm, x, weight, 1e-5, residual), [by_torch]


def _gate(rows: int, place: Place) -> tuple[Call, list[Call]]:
    gate_up = _halves(place, rows, 2 * FFN)

    def by_torch() -> Tensor:
        gate, up = gate_up.chunk(2, dim=-1)
        return F.silu(gate) * up

    return partial(silu_and_mul, gate_up), [by_torch]


def _rotate(rows: int, int8: bool, place: Place) -> tuple[Call, list[Call]]:
    device = place.torch_device
    qkv = _halves(place, rows, (HEADS + 2 * KV_HEADS) * HEAD_DIM)
    angles = torch.rand(rows, HEAD_DIM // 2, device=device).repeat(1, 2)
    cache, slots = random_cache(-(-rows // BLOCK_SIZE), int8=int8, device=device), torch.arange(rows, device=device)
    operands = (qkv, angles.cos(), angles.sin(), HEADS, KV_HEADS, cache, slots)
    return partial(rotate_and_write, *operands), [partial(ReferenceKernels().rope_and_write_kv, *operands)]


def _copy(blocks: int, place: Place) -> tuple[Call, list[Call]]:
    cache = random_cache(2 * blocks, int8=False, device=place.torch_device).keys
    read = torch.arange(blocks, device=place.torch_device)
    pairs = torch.stack((read, read + blocks), dim=1).to(torch.int32)
    written = read + blocks

    def by_torch() -> Tensor:
        return cache.index_copy_(0, written, cache.index_select(0, read))

    return partial(copy_blocks, cache[None], cache[None], pairs), [by_torch]


def _draw(rows: int, place: Place) -> tuple[Call, list[Call]]:
    device = place.torch_device
    logits = torch.randn(rows, VOCABULARY, device=device)
    temperatures, min_p = torch.full((rows,), 0.7, device=device), torch.full((rows,), 0.01, device=device)
    seeds, positions = torch.arange(rows, device=device), torch.arange(rows, device=device)

    def by_torch() -> Tensor:
        return torch.multinomial((logits / 0.7).softmax(-1), 1)

    return partial(draw_tokens, logits, temperatures, min_p, seeds, positions), [by_torch]
