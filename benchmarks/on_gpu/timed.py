"""A kernel's time beside its bound, and beside that of torch's own operators for the same work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.on_gpu.place import Place, launching
from benchmarks.on_gpu.stopwatch import Stopwatch

from quantgate_kernels.roofline import DeviceLimits, LimitedBy, Work, bound_of

Call = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Case:
    """prepare: lays the operands out there, and gives the kernel's call and torch's for the same, any number of them.

    work: bytes that must at least be read or written, and operations.
    """

    kernel: str
    shape: str
    work: Work
    prepare: Callable[[Place], tuple[Call, Sequence[Call]]]


@dataclass(frozen=True, slots=True)
class Timed:
    """bytes, operations: what must at least be done; bound_seconds: what that takes, None where a limit is not known.

    torch_seconds: of the fastest of torch's ways. kernels: those that were compiled. None where nothing ran.
    """

    kernel: str
    shape: str
    bytes: float
    operations: dict[str, float]
    kernels: tuple[str, ...] = ()
    seconds: float | None = None
    bound_seconds: float | None = None
    limited_by: LimitedBy | None = None
    torch_seconds: float | None = None

    @property
    def share(self) -> float | None:
        """Of the bound that was reached."""
        return None if self.seconds is None or self.bound_seconds is None else self.bound_seconds / self.seconds

    @property
    def times_torch(self) -> float | None:
        """How many times as fast as torch."""
        return None if self.seconds is None or self.torch_seconds is None else self.torch_seconds / self.seconds


def time_all(
    cases: Iterable[Case], place: Place, limits: DeviceLimits | None, stopwatch: Stopwatch | None
) -> list[Timed]:
    """stopwatch: None where nothing runs: then each call is made once, for shapes and code."""
    return [_laid_out(case, place) if stopwatch is None else _timed(case, place, limits, stopwatch) for case in cases]


def _laid_out(case: Case, place: Place) -> Timed:
    call, by_torch = case.prepare(place)
    with launching(place) as kernels:
        call()
    for other in by_torch:
        other()
    return Timed(case.kernel, case.shape, case.work.bytes_read, dict(case.work.operations), tuple(kernels))


def _timed(case: Case, place: Place, limits: DeviceLimits | None, stopwatch: Stopwatch) -> Timed:
    call, by_torch = case.prepare(place)
    bound = None if limits is None else bound_of([case.work], limits)
    return Timed(
        case.kernel,
        case.shape,
        case.work.bytes_read,
        dict(case.work.operations),
        seconds=stopwatch.seconds(call),
        bound_seconds=None if bound is None else bound.seconds,
        limited_by=None if bound is None else bound.limited_by,
        torch_seconds=_fastest(by_torch, stopwatch),
    )


def _fastest(calls: Sequence[Call], stopwatch: Stopwatch) -> float | None:
    """None where torch has no way for this, or none on this GPU."""
    found: list[float] = []
    for call in calls:
        try:
            found.append(stopwatch.seconds(call))
        except RuntimeError:
            continue
    return min(found, default=None)
