"""The document's rows as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.on_gpu.bars import Bar
from benchmarks.on_gpu.engine_speed import graphs_told
from benchmarks.on_gpu.stages import DONE, LIMITS
from rich.console import Console
from rich.markup import escape
from rich.table import Table

NONE = "–"
Row = Mapping[str, Any]


def print_stage(console: Console, name: str, outcome: Row) -> None:
    if outcome["outcome"] != DONE:
        console.print(f"[bold]{name}: {outcome['outcome']}[/bold] {escape(outcome['error'])}", highlight=False)
        return
    compiled = {kernel for row in outcome["rows"] for kernel in row.get("kernels", ())}
    what = f"{len(outcome['rows'])} rows{f', {len(compiled)} kernels compiled' if compiled else ''}"
    console.print(f"{name}: {what} in {outcome['seconds']} s", highlight=False)
    kind = name.partition(" ")[0]
    if name != LIMITS and outcome["rows"]:
        console.print({"check": _checks, "time": _times, "engine": _speeds}[kind](outcome["rows"]))
    elif outcome["rows"]:
        console.print(_limits(outcome["rows"][0]), highlight=False)


def _limits(row: Row) -> str:
    def tera(number: float | None) -> str:
        return NONE if number is None else f"{number / 1e12:.2f}"

    return (
        f"  reads {tera(row['read_bytes_per_s'])} TB/s (by {row['measured_by']['read_bytes_per_s']}); multiplies "
        f"{tera(row['matmul_ops_per_s'])} float16, {tera(row['int8_ops_per_s'])} int8, "
        f"{tera(row['float32_ops_per_s'])} float32 TOP/s"
    )


def _checks(rows: Sequence[Row]) -> Table:
    """A row for each kernel: its case that is nearest to its limit or beyond it; each case that is wrong besides."""
    table = _table("kernel", "case", "cases", "largest error", "error", "limit", "right")
    for kernel in dict.fromkeys(row["kernel"] for row in rows):
        own = [row for row in rows if row["kernel"] == kernel]
        worst = max(own, key=_share_of_limit)
        largest = max((row["largest_error"] for row in own if row["largest_error"] is not None), default=None)
        others = [row for row in own if row["right"] is False and row is not worst]
        for row, count in ((worst, str(len(own))), *((other, "") for other in others)):
            error = largest if row is worst else row["largest_error"]
            table.add_row(
                kernel,
                row["case"],
                count,
                _small(error),
                _small(row["error"]),
                _small(row["limit"]),
                _yes(row["right"]),
            )
    return table


def _share_of_limit(row: Row) -> float:
    if not row["error"]:
        return 0.0
    return float(row["error"]) / float(row["limit"]) if row["limit"] else float("inf")


def _times(rows: Sequence[Row]) -> Table:
    table = _table("kernel", "shape", "MB", "GOP", "microseconds", "bound", "share", "torch", "torch / this")
    for row in rows:
        table.add_row(
            row["kernel"],
            row["shape"],
            f"{row['bytes'] / 1e6:,.2f}",
            f"{sum(row['operations'].values()) / 1e9:,.1f}",
            _micro(row["seconds"]),
            _micro(row["bound_seconds"]),
            _percent(row["share"]),
            _micro(row["torch_seconds"]),
            NONE if row["times_torch"] is None else f"{row['times_torch']:.2f}",
        )
    return table


def _speeds(rows: Sequence[Row]) -> Table:
    table = _table("scheme", "phase", "sequences", "graphs", "weights GB", "tokens/s", "step ms", "bound ms")
    for row in rows:
        table.add_row(
            row["scheme"],
            row["phase"],
            str(row["batch"]),
            graphs_told(row),
            f"{row['weight_bytes'] / 1e9:.2f}",
            NONE if row["tokens_per_s"] is None else f"{row['tokens_per_s']:,.0f}",
            *(NONE if row[name] is None else f"{row[name] * 1e3:.2f}" for name in ("step_s", "bound_step_s")),
        )
    return table


def print_bars(console: Console, bars: Iterable[Bar]) -> None:
    table = _table("bar", "at least", "found", "least at", "cases", "met")
    for bar in bars:
        found = NONE if bar.found is None else f"{bar.found:.2f}"
        table.add_row(bar.name, f"{bar.least:.2f}", found, bar.least_at or NONE, str(bar.of), _met(bar.met))
    console.print(table)


def _table(*headers: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for header in headers:
        text = header in ("kernel", "case", "shape", "scheme", "phase", "bar", "least at")
        table.add_column(header, justify="left" if text else "right", overflow="fold")
    return table


def _small(number: float | None) -> str:
    return NONE if number is None else f"{number:.2g}"


def _micro(seconds: float | None) -> str:
    return NONE if seconds is None else f"{seconds * 1e6:,.1f}"


def _percent(share: float | None) -> str:
    return NONE if share is None else f"{share:.0%}"


def _yes(right: bool | None) -> str:
    return NONE if right is None else "yes" if right else "NO"


def _met(met: bool | None) -> str:
    return "not measured" if met is None else "met" if met else "NOT MET"
