"""Each kernel is measured on its own and held against what it must at least read and multiply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle

import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from rich.console import Console
from rich.table import Table

from quantgate_kernels.roofline import DeviceLimits, Work, bound_of

TORCH = "torch"
"""The name of what everything else is compared with."""


@dataclass(frozen=True, slots=True)
class Row:
    """Seconds of the median; the bound is None where the device has no such limit."""

    kernel: str
    by: str
    seconds: float
    bound_seconds: float | None


ROWS = pytest.StashKey[list[Row]]()


@dataclass(frozen=True, slots=True)
class BesideBound:
    """Measures one kernel by one implementation; what it finds stands in `extra_info` of pytest-benchmark's JSON."""

    benchmark: BenchmarkFixture
    limits: DeviceLimits
    rows: list[Row]

    def measure(self, kernel: str, by: str, work: Work, calls: Sequence[Callable[[], object]]) -> None:
        """calls: the same work on other memory, gone through in turn. One of them is one measurement."""
        turn = cycle(calls)
        self.benchmark.group = kernel
        self.benchmark(lambda: next(turn)())
        bound = bound_of([work], self.limits)
        self.benchmark.extra_info.update(
            kernel=kernel, by=by, bytes=work.bytes_read, operations=dict(work.operations),
            bound_seconds=bound and bound.seconds, limited_by=bound and bound.limited_by,
        )  # fmt: skip
        # There are none under --benchmark-disable, which only tries whether everything runs.
        if self.benchmark.stats is not None:
            median = self.benchmark.stats.stats.median
            self.benchmark.extra_info["share"] = bound and bound.seconds / median
            self.rows.append(Row(kernel, by, median, bound and bound.seconds))


def summary(rows: Sequence[Row]) -> Table:
    """In the order in which kernels were measured, each beside torch's time for the same work."""
    of_torch = {row.kernel: row.seconds for row in rows if row.by == TORCH}
    table = Table(title="Each kernel beside its bound (medians)")
    table.add_column("kernel")
    table.add_column("by")
    for header in ("microseconds", "bound", "share", "torch / this"):
        table.add_column(header, justify="right")
    for row in rows:
        base = of_torch.get(row.kernel)
        table.add_row(
            row.kernel,
            row.by,
            f"{row.seconds * 1e6:,.1f}",
            "–" if row.bound_seconds is None else f"{row.bound_seconds * 1e6:,.1f}",
            "–" if row.bound_seconds is None else f"{row.bound_seconds / row.seconds:.0%}",
            "–" if base is None else f"{base / row.seconds:.2f}",
        )
    return table


def print_summary(rows: Sequence[Row]) -> None:
    Console(width=120).print(summary(rows))
