"""Norm with residual, rope with the write of keys and values, and the activation: in C++, and by torch.

Bound: operands are read once, from memory. They are found in the caches as in a step, so that many rows can pass it; of
few rows the bound is nanoseconds, and what they cost is the call.
"""

from __future__ import annotations

import pytest
import torch
from benchmarks.kernels.beside_bounds import TORCH, BesideBound
from benchmarks.kernels.shapes import FFN, HEAD_DIM, HEADS, HIDDEN, KV_HEADS, ROWS, kv_layer, numbers, paged_batch

from quantgate_kernels.cpu.kernels import CpuKernels
from quantgate_kernels.kernel_set import KernelSet
from quantgate_kernels.reference.kernels import ReferenceKernels
from quantgate_kernels.roofline import Work

pytestmark = pytest.mark.benchmark(max_time=0.15, min_rounds=10, warmup=True, disable_gc=True)

BY = ("cpp", TORCH)


@pytest.fixture
def kernels(by: str, cpu: CpuKernels, reference: ReferenceKernels) -> KernelSet:
    return reference if by == TORCH else cpu


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("rows", ROWS)
def test_rms_norm(rows: int, by: str, kernels: KernelSet, beside_bound: BesideBound) -> None:
    x, residual, weight = numbers(rows, HIDDEN), numbers(rows, HIDDEN, seed=2), numbers(HIDDEN, seed=3)
    # A sum, its square, and two multiplications.
    work = Work(2 * (2 * rows + 1) * HIDDEN, {"float32": 5.0 * rows * HIDDEN})
    beside_bound.measure(f"rms_norm, {rows} rows", by, work, [lambda: kernels.rms_norm(x, weight, 1e-5, residual)])


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("rows", ROWS)
def test_silu_and_mul(rows: int, by: str, kernels: KernelSet, beside_bound: BesideBound) -> None:
    gate_up = numbers(rows, 2 * FFN)
    # The exponential is a polynomial of some 20 operations.
    work = Work(2 * rows * 2 * FFN, {"float32": 22.0 * rows * FFN})
    beside_bound.measure(f"silu_and_mul, {rows} rows", by, work, [lambda: kernels.silu_and_mul(gate_up)])


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("stored", ["bfloat16", "int8"])
@pytest.mark.parametrize("rows", ROWS)
def test_rope_and_write_kv(rows: int, stored: str, by: str, kernels: KernelSet, beside_bound: BesideBound) -> None:
    batch = paged_batch([(0, rows)])
    cache = kv_layer(batch, stored_as_int8=stored == "int8")
    width = (HEADS + 2 * KV_HEADS) * HEAD_DIM
    qkv, angles = numbers(rows, width), numbers(rows, HEAD_DIM // 2, seed=2).float().repeat(1, 2)
    cos, sin = torch.cos(angles), torch.sin(angles)
    work = Work(2 * rows * width + 8 * rows * HEAD_DIM, {"float32": 3.0 * rows * (HEADS + KV_HEADS) * HEAD_DIM})
    beside_bound.measure(
        f"rope_and_write_kv, {stored} KV, {rows} rows",
        by,
        work,
        [lambda: kernels.rope_and_write_kv(qkv, cos, sin, HEADS, KV_HEADS, cache, batch.slots)],
    )
