"""What the kernels are to reach on a GPU, and what they did, from the rows of the stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.on_gpu.llama import PRODUCTS
from benchmarks.on_gpu.names import DECODE, FEW_ROWS, KV_FORMS, PREFILL, W4A16, shape_name

Row = Mapping[str, Any]
Cases = Mapping[str, Sequence[Row]]
"""By name, rows that count together."""

LEAST_BANDWIDTH = 0.7
LEAST_TIMES_FLOAT16 = 2.5
LEAST_TIMES_SDPA = 0.6


@dataclass(frozen=True, slots=True)
class Bar:
    """found: the least over `of` cases, which is that of `least_at`; None where nothing was measured."""

    name: str
    least: float
    found: float | None
    least_at: str | None
    of: int

    @property
    def met(self) -> bool | None:
        return None if self.found is None else self.found >= self.least


def bars(timed: Sequence[Row], read_bytes_per_s: float | None) -> list[Bar]:
    """timed: the rows of all stages that time kernels. All products of a decoder layer together are one case."""

    def bandwidth(rows: Sequence[Row]) -> float | None:
        if read_bytes_per_s is None:
            return None
        return _sum(rows, "bytes") / _sum(rows, "seconds") / read_bytes_per_s

    def times_torch(rows: Sequence[Row]) -> float | None:
        if any(row["torch_seconds"] is None for row in rows):
            return None
        return _sum(rows, "torch_seconds") / _sum(rows, "seconds")

    layers = {f"{rows} rows": _layer(timed, rows) for rows in FEW_ROWS}
    lone = {"1 row": _layer(timed, 1)}
    found = []
    for stored in KV_FORMS.values():
        name = f"decode attention, {stored}: share of measured bandwidth"
        found.append(_bar(name, LEAST_BANDWIDTH, _attention(timed, DECODE, stored), bandwidth))
    found.append(_bar("W4A16, 1 to 16 rows, a layer: share of measured bandwidth", LEAST_BANDWIDTH, layers, bandwidth))
    found.append(_bar("W4A16, 1 row, a layer: times as fast as float16", LEAST_TIMES_FLOAT16, lone, times_torch))
    for stored in KV_FORMS.values():
        name = f"prefill attention, {stored}: times as fast as torch's"
        found.append(_bar(name, LEAST_TIMES_SDPA, _attention(timed, PREFILL, stored), times_torch))
    return found


def _attention(timed: Sequence[Row], kernel: str, stored: str) -> Cases:
    own = [row for row in timed if row["kernel"] == kernel and str(row["shape"]).endswith(stored)]
    return {str(row["shape"]): [row] for row in own}


def _layer(timed: Sequence[Row], rows: int) -> list[Row]:
    """Empty where one of a layer's products is missing."""
    shapes = {shape_name(product, rows) for product in PRODUCTS}
    found = [row for row in timed if row["kernel"] == W4A16 and row["shape"] in shapes]
    return found if len(found) == len(shapes) else []


def _sum(rows: Sequence[Row], column: str) -> float:
    return sum(float(row[column]) for row in rows)


def _bar(name: str, least: float, cases: Cases, value: Callable[[Sequence[Row]], float | None]) -> Bar:
    ran = {case: value(rows) for case, rows in cases.items() if rows and all(row["seconds"] for row in rows)}
    measured = {case: number for case, number in ran.items() if number is not None}
    at = min(measured, key=lambda case: measured[case], default=None)
    return Bar(name, least, None if at is None else measured[at], at, len(measured))
