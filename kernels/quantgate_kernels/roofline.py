"""Bounds: what a step must move and compute, and what this device can move and compute.

Pure functions of shapes, and two small measurements of the device. A bound is never called a measurement of an engine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class DeviceLimits:
    """Measured limits: bytes per second read from memory, operations per second of 16-bit matrix products."""

    read_bytes_per_s: float
    matmul_ops_per_s: float


def decode_bound_tok_s(
    limits: DeviceLimits, weight_bytes_read: int, kv_bytes_per_token: int, context_tokens: int, batch: int
) -> float:
    """Upper bound of decode throughput: every step reads the weights once and each sequence's keys and values once.

    tokens/s = batch * bandwidth / (weight bytes + batch * context * KV bytes per token)
    """
    step_bytes = weight_bytes_read + batch * context_tokens * kv_bytes_per_token
    return batch * limits.read_bytes_per_s / step_bytes


def prefill_bound_tok_s(
    limits: DeviceLimits, linear_parameters: int, prompt_tokens: int, layers: int, heads: int, head_dim: int
) -> float:
    """Upper bound of prefill throughput: two operations per weight and token, and causal attention.

    operations = 2 * parameters * tokens + 2 * layers * heads * head_dim * tokens^2
    (scores and weighted sum, 2 operations each, half of the square by causality)
    """
    operations = 2 * linear_parameters * prompt_tokens + 2 * layers * heads * head_dim * prompt_tokens**2
    return prompt_tokens * limits.matmul_ops_per_s / operations


def measure_device_limits(repeats: int = 5) -> DeviceLimits:
    """Best of `repeats`: a sum over 256 MiB (reads only), and a bfloat16 matrix product of 1,536 cubed."""
    memory = torch.ones(64 * 1024 * 1024, dtype=torch.float32)
    side = 1536
    left = torch.randn(side, side).to(torch.bfloat16)
    right = torch.randn(side, side).to(torch.bfloat16)
    read_seconds = min(_seconds(lambda: memory.sum()) for _ in range(repeats))
    matmul_seconds = min(_seconds(lambda: left @ right) for _ in range(repeats))
    return DeviceLimits(memory.numel() * memory.element_size() / read_seconds, 2 * side**3 / matmul_seconds)


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
