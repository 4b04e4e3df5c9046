"""Norm, gate, copies of blocks and draws against float64, to the bit, and to the engine's own noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import torch
from benchmarks.on_gpu.checked import Check, Compared, near, same
from benchmarks.on_gpu.place import Place
from torch import Tensor

from quantgate_engine.sampling.noise import gumbel_noise
from quantgate_kernels.gpu.copy_blocks import copy_blocks
from quantgate_kernels.gpu.draw_tokens import draw_tokens
from quantgate_kernels.gpu.rms_norm import rms_norm
from quantgate_kernels.gpu.silu_and_mul import silu_and_mul
from quantgate_kernels.types import dtype_name

ROUNDING = {torch.float16: 1e-3, torch.bfloat16: 8e-3}
"""Of a number of the dtype, relative."""
SMALLEST = 1e-7
"""float16 has no finer steps near zero."""
EPS = 1e-5
NOISE = 2e-5
"""How far sums of scaled logits and noise may lie apart for the device's logarithms."""


def row_checks(rows: Sequence[int], sizes: Sequence[int], vocabulary: int) -> Iterator[Check]:
    for dtype in ROUNDING:
        for size in sizes:
            for count in rows:
                generator = torch.Generator().manual_seed(size)
                x, residual = (torch.randn(count, size, generator=generator).to(dtype) for _ in range(2))
                weight = torch.rand(size, generator=generator).to(dtype)
                name = f"{dtype_name(dtype)}, {count} x {size}"
                for added in (None, residual):
                    case = name if added is None else f"{name}, with a residual"
                    yield Check(
                        "rms_norm", case, partial(_norm, x, weight, added), partial(_compare_norm, x, weight, added)
                    )
                gate_up = torch.randn(count, 2 * size, generator=generator).mul_(3).to(dtype)
                yield Check("silu_and_mul", name, partial(_gate, gate_up), partial(_compare_gate, gate_up))
    for dtype in (*ROUNDING, torch.int8, torch.float32):
        cache = torch.randint(-100, 100, (9, 16, 8, 128), generator=torch.Generator().manual_seed(0)).to(dtype)
        yield Check("copy blocks", dtype_name(dtype), partial(_copy, cache), partial(_compare_copies, cache))
    for temperature in (0.0, 0.7, 1.5):
        logits = torch.randn(4, vocabulary, generator=torch.Generator().manual_seed(4)) * 2
        case = f"{len(logits)} x {vocabulary}, temperature {temperature}"
        yield Check("draw", case, partial(_draw, logits, temperature), partial(_compare_draws, logits, temperature))


def _norm(x: Tensor, weight: Tensor, residual: Tensor | None, place: Place) -> list[Tensor]:
    there = place.torch_device
    return list(rms_norm(x.to(there), weight.to(there), EPS, None if residual is None else residual.to(there)))


def _compare_norm(x: Tensor, weight: Tensor, residual: Tensor | None, results: Sequence[Tensor]) -> list[Compared]:
    added = x if residual is None else x + residual
    wide = added.double()
    exact = wide / (wide.square().mean(-1, keepdim=True) + EPS).sqrt() * weight.double()
    return [near("normalised", results[0], exact, SMALLEST, ROUNDING[x.dtype]), same("sum", results[1], added)]


def _gate(gate_up: Tensor, place: Place) -> list[Tensor]:
    return [silu_and_mul(gate_up.to(place.torch_device))]


def _compare_gate(gate_up: Tensor, results: Sequence[Tensor]) -> list[Compared]:
    gate, up = gate_up.double().chunk(2, dim=-1)
    rounding = ROUNDING[gate_up.dtype]
    return [near("gated", results[0], gate / (1 + (-gate).exp()) * up, rounding * 1e-2, rounding)]


COPIES = [(7, 0), (2, 5), (7, 3)]


def _copy(cache: Tensor, place: Place) -> list[Tensor]:
    copied = cache.to(place.torch_device, copy=True)
    copy_blocks(copied[None], copied[None], torch.tensor(COPIES, dtype=torch.int32).to(place.torch_device))
    return [copied]


def _compare_copies(cache: Tensor, results: Sequence[Tensor]) -> list[Compared]:
    expected = cache.clone()
    for read, written in COPIES:
        expected[written] = cache[read]
    return [same("blocks", results[0], expected)]


SEEDS, POSITIONS, MIN_P = (0, 1, 123456789012345, 7), (0, 1, 4096, 2**40), 0.02


def _draw(logits: Tensor, temperature: float, place: Place) -> list[Tensor]:
    rows = len(logits)
    of_rows = (
        torch.full((rows,), temperature), torch.full((rows,), MIN_P), torch.tensor(SEEDS), torch.tensor(POSITIONS)
    )  # fmt: skip
    return [draw_tokens(logits.to(place.torch_device), *(part.to(place.torch_device) for part in of_rows))]


def _compare_draws(logits: Tensor, temperature: float, results: Sequence[Tensor]) -> list[Compared]:
    """The sums of the tokens that were drawn are the greatest, but for the noise's last digits."""
    sums = logits.double()
    if temperature > 0:
        noise = [gumbel_noise(*key, logits.shape[1]) for key in zip(SEEDS, POSITIONS, strict=True)]
        scaled = (logits - logits.amax(1, keepdim=True)) / temperature
        cut = scaled < torch.tensor(MIN_P).log()
        sums = (scaled.double() + torch.stack([torch.as_tensor(row).double() for row in noise])).masked_fill(
            cut, float("-inf")
        )
    drawn = sums.gather(1, results[0][:, None])[:, 0]
    return [near("sum of what was drawn", drawn, sums.amax(1), NOISE, 0.0)]
