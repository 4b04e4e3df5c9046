"""Columns that several tables have."""

from __future__ import annotations

from benchmarks.practice_figures import ENGINE
from benchmarks.practice_setups import Column

THROUGHPUT = Column("output tok/s", "all", "output_tok_s", ",.1f")
GAP = Column("gap p99 ms", "all", "gap_p99_ms")
GOODPUT = Column("goodput req/s", "all", "goodput_rps", ",.2f")
UTILIZATION = Column("KV utilization", ENGINE, "kv_utilization", ".1%")
PREEMPTIONS = Column("preemptions", ENGINE, "preemptions")
RECOMPUTE_TAX = Column("recompute tax", ENGINE, "recompute_tax", ".2%")
PEAK_ACTIVE = Column("peak active", ENGINE, "peak_active")
MEAN_ACTIVE = Column("mean active", ENGINE, "mean_active", ",.1f")
BUSY = Column("device busy", ENGINE, "busy", ".0%")


def ttft(group: str = "all", *percentiles: int) -> tuple[Column, ...]:
    """p50, p95 and p99 of one group, or those that are named."""
    of = "" if group == "all" else f"{group}: "
    return tuple(Column(f"{of}TTFT p{q} ms", group, f"ttft_p{q}_ms") for q in percentiles or (50, 95, 99))
