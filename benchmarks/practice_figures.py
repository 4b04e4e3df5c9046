"""The figures of one replay, by the harness's own metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quantgate.metrics.columns import floats, is_equal
from quantgate.metrics.goodput_rps import goodput_rps
from quantgate.metrics.itl_ms import ITL_MS
from quantgate.metrics.kv_utilization import KV_UTILIZATION
from quantgate.metrics.output_tokens_per_s import output_tokens_per_s
from quantgate.metrics.recompute_tax import RECOMPUTE_TAX
from quantgate.metrics.serving_seconds import serving_seconds
from quantgate.metrics.slo_attainment import SloLimits, slo_attainment
from quantgate.metrics.tail_waste import TAIL_WASTE
from quantgate.metrics.ttft_ms import TTFT_MS
from quantgate.replay.replay_log import CellResult
from quantgate.stats.percentile import percentile

Figures = Mapping[str, Mapping[str, float | None]]
"""Group of requests, or `engine` -> figure -> value; None where there is nothing to measure."""

ENGINE = "engine"

LIMITS: SloLimits = {"interactive": {"ttft_ms": 1_500, "longest_gap_ms": 1_000}, "batch": {"e2e_ms": 30_000}}
"""What counts as good service in the column goodput."""


def _all(requests: pa.Table) -> NDArray[np.bool_]:
    return np.ones(requests.num_rows, dtype=np.bool_)


def _of_class(name: str) -> Callable[[pa.Table], NDArray[np.bool_]]:
    return lambda requests: is_equal(requests, "slo_class", name)


def _of_kind(*kinds: str) -> Callable[[pa.Table], NDArray[np.bool_]]:
    """By their only tag."""
    return lambda requests: np.asarray([kind in kinds for kind in _kinds_of(requests)])


def _kinds_of(requests: pa.Table) -> list[str]:
    return [tag for tags in requests.column("tags").to_pylist() for tag in tags or ()]


GROUPS: Mapping[str, Callable[[pa.Table], NDArray[np.bool_]]] = {
    "all": _all,
    "interactive": _of_class("interactive"),
    "batch": _of_class("batch"),
    "chat": _of_kind("chat"),
    "documents": _of_kind("document"),
    "others": _of_kind("chat", "document"),
    "long": _of_kind("long"),
}
"""`others` are all but the long prompts."""


def figures_of(cell: CellResult) -> Figures:
    """All figures of a replay. Raises RuntimeError where a request did not finish: then no figure means anything."""
    unfinished = [row for row in cell.requests.to_pylist() if row["status"] != "finished"]
    if unfinished or cell.requests.num_rows != cell.requests_intended:
        raise RuntimeError(
            f"{cell.requests_intended - cell.requests.num_rows + len(unfinished)} of {cell.requests_intended} requests "
            f"did not finish: {unfinished[:1]}"
        )
    groups = {name: cell.requests.filter(pa.array(rows(cell.requests))) for name, rows in GROUPS.items()}
    return {
        **{name: _of_requests(requests) for name, requests in groups.items() if requests.num_rows},
        ENGINE: _of_steps(cell.steps) | {"busy": _busy(cell)},
    }


def medians(repeats: list[Figures]) -> Figures:
    """Figure by figure the median over the repeats."""
    return {
        group: {name: _median([repeat[group][name] for repeat in repeats]) for name in figures}
        for group, figures in repeats[0].items()
    }


def _median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _of_requests(requests: pa.Table) -> dict[str, float | None]:
    ttft, gaps = TTFT_MS(requests), ITL_MS(requests).values
    return {
        "requests": float(requests.num_rows),
        "output_tok_s": output_tokens_per_s(requests),
        "ttft_p50_ms": percentile(ttft, 0.50),
        "ttft_p95_ms": percentile(ttft, 0.95),
        "ttft_p99_ms": percentile(ttft, 0.99),
        "gap_p50_ms": percentile(gaps, 0.50) if gaps.size else None,
        "gap_p99_ms": percentile(gaps, 0.99) if gaps.size else None,
        "gap_max_ms": float(gaps.max()) if gaps.size else None,
        "slo_attainment": float(slo_attainment(requests, LIMITS).mean()),
        "goodput_rps": goodput_rps(requests, LIMITS),
    }


def _of_steps(steps: pa.Table) -> dict[str, float | None]:
    seconds = floats(steps, "duration_ns") / 1e9
    active = floats(steps, "active_requests")
    return {
        "steps": float(steps.num_rows),
        "kv_utilization": KV_UTILIZATION(steps),
        "tail_waste": TAIL_WASTE(steps),
        "peak_active": float(active.max()),
        "mean_active": float((active * seconds).sum() / seconds.sum()),
        "peak_blocks": float(floats(steps, "kv_allocated_blocks").max()),
        "preemptions": float(floats(steps, "preemption_count").sum()),
        "recomputed_tokens": float(floats(steps, "recomputed_tokens").sum()),
        "recompute_tax": RECOMPUTE_TAX(steps),
        "oom_count": float(floats(steps, "oom_count").sum()),
    }


def _busy(cell: CellResult) -> float:
    """Time in steps / time of serving; with a device for each pool it may be above 1."""
    return float(floats(cell.steps, "duration_ns").sum()) / 1e9 / serving_seconds(cell.requests)
