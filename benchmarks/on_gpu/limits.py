"""What the GPU reads and multiplies at most, measured just before the kernels are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from quantgate_kernels.roofline import DeviceLimits

COPY_BYTES = 2 * 1024**3
"""Some dozens of times what any GPU caches."""
SIDE = 8192
"""Of the square matrices that are multiplied."""

Seconds = Callable[[Callable[[], object]], float]
"""Of a call, by `Stopwatch.seconds`."""


def measured_limits(device: torch.device, processors: int, seconds: Seconds) -> DeviceLimits:
    """Products are torch's, of random numbers: on zeros a GPU draws less power, and is faster than with any model."""
    read_bytes_per_s, by = _memory(device, seconds)
    return DeviceLimits(
        read_bytes_per_s=read_bytes_per_s,
        matmul_ops_per_s=_products(SIDE, torch.float16, device, seconds),
        int8_ops_per_s=_int8_products(device, seconds),
        float32_ops_per_s=_products(SIDE // 2, torch.float32, device, seconds),
        threads=processors,
        measured_by={"read_bytes_per_s": by, "matmul_ops_per_s": "torch"},
    )


def _memory(device: torch.device, seconds: Seconds) -> tuple[float, str]:
    """The better of a copy, its bytes read and written counted, and of the sum of as many numbers; and which it was."""
    source = torch.randn(COPY_BYTES // 4, device=device)
    target = torch.empty_like(source)
    copied = 2 * COPY_BYTES / seconds(partial(target.copy_, source))
    return max((copied, "copy"), (COPY_BYTES / seconds(source.sum), "sum"))


def _products(side: int, dtype: torch.dtype, device: torch.device, seconds: Seconds) -> float:
    left, right = (torch.randn(side, side, device=device, dtype=dtype) for _ in range(2))
    return 2.0 * side**3 / seconds(partial(torch.matmul, left, right))


def _int8_products(device: torch.device, seconds: Seconds) -> float | None:
    codes = [torch.randint(-127, 128, (SIDE, SIDE), device=device, dtype=torch.int8) for _ in range(2)]
    try:
        return 2.0 * SIDE**3 / seconds(partial(torch._int_mm, codes[0], codes[1].t()))
    except (AttributeError, RuntimeError):
        # Not a public operator, or not on this GPU.
        return None
