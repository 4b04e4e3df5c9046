"""A kernel's results held against float64: the largest error, and what is allowed where it is nearest to that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from benchmarks.on_gpu.place import Place, launching
from torch import Tensor

LARGEST = torch.finfo(torch.float64).max


@dataclass(frozen=True, slots=True)
class Compared:
    """A result, what it would be exactly (float64, or integers), and how far it may be from that, number by number."""

    what: str
    result: Tensor
    exact: Tensor
    allowed: Tensor


@dataclass(frozen=True, slots=True)
class Check:
    """run: launches the kernel there. compare: gets what `run` returned, on the CPU."""

    kernel: str
    case: str
    run: Callable[[Place], Sequence[Tensor]]
    compare: Callable[[Sequence[Tensor]], list[Compared]]


@dataclass(frozen=True, slots=True)
class Checked:
    """largest_error: of all numbers; error and limit: of the one that is nearest to its limit or beyond it.

    None, as is `right`, where nothing was computed, but `kernels` compiled.
    """

    kernel: str
    case: str
    numbers: int
    largest_error: float | None
    error: float | None
    limit: float | None
    right: bool | None
    kernels: tuple[str, ...] = ()


def near(what: str, result: Tensor, exact: Tensor, absolute: float, relative: float) -> Compared:
    return Compared(what, result, exact, absolute + relative * exact.abs().double())


def same(what: str, result: Tensor, exact: Tensor) -> Compared:
    """To the bit."""
    return Compared(what, result, exact, torch.zeros(exact.shape, dtype=torch.float64))


def check_all(checks: Iterable[Check], place: Place) -> list[Checked]:
    """Raises what a launch raises: the stages above this say which one failed."""
    return [_checked(check, place) for check in checks]


def _checked(check: Check, place: Place) -> Checked:
    with launching(place) as kernels:
        results = check.run(place)
    if place.dry:
        # References run too, on zeros: what they are asked for has the shape of what kernels give.
        results = [torch.zeros(result.shape, dtype=result.dtype) for result in results]
    compared = check.compare([result.cpu() for result in results])
    for one in compared:
        if one.result.shape != one.exact.shape:
            raise ValueError(f"{one.what}: {tuple(one.result.shape)} is not {tuple(one.exact.shape)}")
    numbers = sum(one.exact.numel() for one in compared)
    if place.dry:
        return Checked(check.kernel, check.case, numbers, None, None, None, None, tuple(kernels))
    share, error, limit = max(map(_worst, compared), key=lambda found: found[0])
    largest = max(float(_errors(one).max()) for one in compared)
    return Checked(check.kernel, check.case, numbers, largest, error, limit, right=share <= 1)


def _errors(compared: Compared) -> Tensor:
    """What is not a number is as wrong as a number can be: JSON has no infinity."""
    return (compared.result.double() - compared.exact.double()).abs().nan_to_num(nan=LARGEST, posinf=LARGEST)


def _worst(compared: Compared) -> tuple[float, float, float]:
    """(error / limit, error, limit) of the number where the first is greatest."""
    errors = _errors(compared)
    shares = torch.where(errors > 0, errors / compared.allowed, 0.0)
    at = int(shares.argmax())
    return float(shares.flatten()[at]), float(errors.flatten()[at]), float(compared.allowed.flatten()[at])
