"""A million simulated requests through the real engine: nothing may leak, get lost or end twice.

    python benchmarks/soak.py --requests 1000000

Seeded arrivals of the shape of Azure's conversation trace on the virtual clock, outputs cut at 32 tokens, bursts at
three times the capacity every minute, 5 % disconnects (half of them in the middle of a step), 2 % timeouts, two SLO
classes, sessions, forks, prefix sharing and preemption. The books are checked every 200 steps, every token of every
answer is checked, and any breach ends it with an error. The tests run 10,000 requests of it.

Memory: the least of each window is what is there whatever the load is. `memory_growth` is the least of the last quarter
over the least of the second one. tracemalloc makes everything several times slower, so it watches a shorter run.
"""

from __future__ import annotations

import argparse
import json
import sys
import tracemalloc
from dataclasses import asdict
from pathlib import Path

# The traffic and the checks are those of the tests, which are no installed package.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import psutil
from tests.engine.soak import Soak, capacity_per_s, living_requests
from tests.engine.soak_windows import growth

from quantgate_engine.clock import MonotonicClock


def resident_mb() -> float:
    return float(psutil.Process().memory_info().rss) / 1e6


def measure(requests: int, seed: int) -> dict[str, object]:
    machine = MonotonicClock()
    before = living_requests()
    soak = Soak(requests, seed, resident_mb=resident_mb)
    started_ns = machine.now_ns()
    soak.run()
    seconds = (machine.now_ns() - started_ns) / 1e9
    totals = soak.core.totals
    report = {
        "requests": requests,
        "seconds": round(seconds, 1),
        "virtual_seconds": round(soak.clock.now_ns() / 1e9, 1),
        "capacity_per_s": round(capacity_per_s(seed), 1),
        "ends": dict(soak.ends),
        "totals": asdict(totals),
        "recompute_tax": round(totals.recompute_tax, 5),
        "peak_waiting": soak.peak_waiting,
        "memory_growth": {
            "python_blocks": round(growth(soak.windows, lambda window: window.python_blocks), 4),
            "resident_mb": round(growth(soak.windows, lambda window: window.resident_mb), 4),
        },
        "greatest_holders": [asdict(holding) for holding in soak.core.kv_greatest_holders()[:5]],
        "windows": [asdict(window) for window in soak.windows],
    }
    del soak
    return {**report, "requests_left_in_memory": living_requests() - before}


def measure_traced(requests: int, seed: int) -> dict[str, object]:
    """The same with every allocation counted."""
    tracemalloc.start()
    soak = Soak(requests, seed)
    soak.run()
    tracemalloc.stop()
    return {
        "requests": requests,
        "memory_growth": round(growth(soak.windows, lambda window: window.traced_mb), 4),
        "traced_mb": [window.traced_mb for window in soak.windows],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--traced-requests", type=int, default=50_000, help="0 leaves the traced run out")
    parser.add_argument("--seed", type=int, default=20_231_116)
    arguments = parser.parse_args()
    report = measure(arguments.requests, arguments.seed)
    if arguments.traced_requests:
        report["traced"] = measure_traced(arguments.traced_requests, arguments.seed)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
