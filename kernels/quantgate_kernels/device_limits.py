"""What a CPU reads and multiplies at most, measured in about a second.

Two kinds of measurement, of which the better counts: compiled probes, which stay in registers or stream through memory
and do nothing else, and torch's own operators, which may know instructions that the probes do not (matrix tiles).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor

from quantgate_kernels.cpu.probes import Probes, Sample
from quantgate_kernels.roofline import DeviceLimits
from quantgate_kernels.unavailable import KernelSetUnavailableError

Clock = Callable[[], float]
"""Seconds, from wherever."""

Rates = Mapping[str, float | None]
"""By the name of a limit; None where it could not be measured."""

READ_BYTES = 256 * 1024 * 1024
"""More than most processors can cache."""

SIDES = (256, 1024)
"""Of the square matrices that are multiplied; large ones where the small ones promise that they do not take long."""

SAMPLES = 16
LONGEST_S = 0.1
"""Sampling ends when it has taken so long, with one sample at least."""


def measure_device_limits(threads: int | None = None) -> DeviceLimits:
    """The best of several samples of each limit, with `threads` threads (torch's number of them by default).

    Nothing else may run beside it. It takes 256 MiB of memory while it runs.
    """
    with _torch_threads(threads) as count, torch.inference_mode():
        ones = torch.ones(READ_BYTES // 4)
        found = {"torch": rates_of_torch(ones)}
        try:
            probes = Probes()
        except KernelSetUnavailableError:
            pass
        else:
            found["cpp"] = rates_of_probes(probes, ones, count)
        return best_of(found, count)


def best_of(found: Mapping[str, Rates], threads: int) -> DeviceLimits:
    """found: rates by who measured them; of each limit the highest is taken, and noted whose it is.

    Raises ValueError where nobody measured a limit that every CPU has.
    """
    best: dict[str, float] = {}
    by: dict[str, str] = {}
    for who, rates in found.items():
        for limit, rate in rates.items():
            if rate is not None and rate > best.get(limit, 0.0):
                best[limit], by[limit] = rate, who
    missing = {"read_bytes_per_s", "matmul_ops_per_s", "float32_ops_per_s"} - best.keys()
    if missing:
        raise ValueError(f"nobody measured {', '.join(sorted(missing))}")
    return DeviceLimits(
        read_bytes_per_s=best["read_bytes_per_s"],
        matmul_ops_per_s=best["matmul_ops_per_s"],
        int8_ops_per_s=best.get("int8_ops_per_s"),
        float32_ops_per_s=best["float32_ops_per_s"],
        threads=threads,
        measured_by=by,
    )


def rates_of_probes(probes: Probes, ones: Tensor, threads: int) -> dict[str, float | None]:
    return {
        "read_bytes_per_s": _highest_rate(lambda: probes.read(ones, threads)),
        "matmul_ops_per_s": _highest_rate(lambda: probes.multiply("16-bit", threads)),
        "int8_ops_per_s": _highest_rate(lambda: probes.multiply("int8", threads)),
        "float32_ops_per_s": _highest_rate(lambda: probes.multiply("float32", threads)),
    }


def rates_of_torch(ones: Tensor, clock: Clock = time.perf_counter) -> dict[str, float | None]:
    """ones: float32, as many as are to be read."""
    return {
        "read_bytes_per_s": ones.numel() * ones.element_size() / fastest_seconds(ones.sum, clock),
        "matmul_ops_per_s": product_rate(partial(_floating_product, torch.bfloat16), clock),
        "int8_ops_per_s": product_rate(_int8_product, clock),
        "float32_ops_per_s": product_rate(partial(_floating_product, torch.float32), clock),
    }


def product_rate(product: Callable[[int], Callable[[], object]], clock: Clock = time.perf_counter) -> float | None:
    """Operations per second of the fastest of `product(side)()`, which multiplies two square matrices of that side.

    None where torch cannot multiply them.
    """
    highest: float | None = None
    for side in SIDES:
        operations = 2 * side**3
        if highest is not None and operations / highest > LONGEST_S:
            break
        try:
            rate = operations / fastest_seconds(product(side), clock)
        except (AttributeError, RuntimeError):
            # Not a public operator, or not on this processor.
            break
        highest = rate if highest is None else max(highest, rate)
    return highest


def fastest_seconds(work: Callable[[], object], clock: Clock = time.perf_counter) -> float:
    """The least time that `work` took; the first call warms up what is to be warm."""
    started = clock()
    times: list[float] = []
    while not times or (len(times) < SAMPLES and clock() - started < LONGEST_S):
        before = clock()
        work()
        times.append(clock() - before)
    return min(times)


def _highest_rate(sample: Callable[[], Sample], clock: Clock = time.perf_counter) -> float | None:
    started = clock()
    rates: list[float] = []
    while not rates or (len(rates) < SAMPLES and clock() - started < LONGEST_S):
        rate = sample().rate
        if rate is None:
            return None
        rates.append(rate)
    return max(rates)


def _floating_product(dtype: torch.dtype, side: int) -> Callable[[], object]:
    matrix = torch.ones(side, side, dtype=dtype)
    return lambda: matrix @ matrix


def _int8_product(side: int) -> Callable[[], object]:
    matrix = torch.ones(side, side, dtype=torch.int8)
    return lambda: torch._int_mm(matrix, matrix)


@contextmanager
def _torch_threads(threads: int | None) -> Iterator[int]:
    before = torch.get_num_threads()
    count = before if threads is None else threads
    torch.set_num_threads(count)
    try:
        yield count
    finally:
        torch.set_num_threads(before)
