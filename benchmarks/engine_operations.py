"""Random operations on the simulated engine, with its books checked after every step.

    python benchmarks/engine_operations.py --operations 100000

Submits, steps, aborts (between steps and in the middle of one), forks, preemptions, swaps, session turns, cap changes
and failing steps, spread over every preemption mode and victim policy. A block that is lost or given to two, a request
that is lost, starved or ended twice, a wrong token: each ends it with an error. The tests run a share of it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from pathlib import Path

# The operations and what must hold after them are those of the tests, which are no installed package.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.engine.random_operations import RandomOperations, engine_under_pressure

from quantgate_engine.clock import MonotonicClock
from quantgate_engine.scheduler.preemption.modes import PREEMPTION_MODES
from quantgate_engine.scheduler.preemption.victims import VICTIM_POLICIES


def measure(operations: int, seed: int) -> dict[str, object]:
    clock = MonotonicClock()
    started_ns = clock.now_ns()
    arms = list(itertools.product(PREEMPTION_MODES, VICTIM_POLICIES))
    table: dict[str, object] = {}
    for number, (mode, victim) in enumerate(arms):
        run = RandomOperations(engine_under_pressure(mode, victim), seed + number)
        run.run(operations // len(arms) + (number < operations % len(arms)))
        run.drain()
        totals = run.engine.core.totals
        table[f"{mode}, {victim}"] = {
            "requests": run.num_ended,
            "steps": totals.steps,
            "preemptions": totals.preemption_count,
            "recompute_tax": round(totals.recompute_tax, 4),
            "cached_prompt_tokens": totals.cached_prompt_tokens,
            "aborts_by_cause": {cause.value: count for cause, count in run.engine.core.aborts_by_cause.items()},
        }
    return {
        "operations": operations,
        "seed": seed,
        "seconds": round((clock.now_ns() - started_ns) / 1e9, 1),
        "engines": table,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments.operations, arguments.seed), indent=2))


if __name__ == "__main__":
    main()
