"""What the scripts that measure practices have in common: their options, and what they print and write."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.output_file import output_file
from benchmarks.practice_executors import COSTS_FILE, MACHINES
from benchmarks.practice_figures import LIMITS
from benchmarks.practice_report import print_table, table_document
from benchmarks.practice_runs import measure
from benchmarks.practice_setups import PracticeTable
from benchmarks.practice_traffic import Traffic, describe
from rich.console import Console

from quantgate.environment import capture_environment
from quantgate.progress import ProgressReporter

TABLE_WIDTH = 200
"""Characters; narrower terminals wrap the lines, which is easier to read than columns of three characters."""

Tables = Mapping[str, Callable[[Traffic], PracticeTable]]


def run(description: str | None, tables: Tables, traffic: Traffic, arguments: Sequence[str] | None = None) -> None:
    """Measures the tables that the command line asks for, prints them and writes them where it says.

    traffic: what is replayed unless options say otherwise. arguments: the command line; None takes the process's.
    """
    options = _parse(description, tables, traffic, arguments)
    traffic = replace(traffic, requests=options.requests, requests_per_s=options.requests_per_s, seed=options.seed)
    progress = ProgressReporter(Console(stderr=True))
    machine = MACHINES[options.executor](options)
    chosen = {name: tables[name](traffic) for name in options.tables}
    for name in [name for name, table in chosen.items() if table.needs_several_devices > machine.several_devices]:
        progress.note(f"{name} is left out: it needs several devices, which only the simulated executor has.")
        del chosen[name]
    setups = [setup for table in chosen.values() for setup in table.rows.values()]
    measured = measure(setups, machine.replay, options.repeats, progress)
    document: dict[str, Any] = {
        "executor": options.executor,
        "repeats": options.repeats,
        "traffic": describe(traffic),
        "slo_limits": LIMITS,
        "environment": capture_environment().model_dump(),
        **machine.description,
        "tables": {name: table_document(table, measured) for name, table in chosen.items()},
    }
    console = Console(width=TABLE_WIDTH)
    for table in document["tables"].values():
        print_table(table, console)
    if options.output is not None:
        options.output.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _parse(
    description: str | None, tables: Tables, traffic: Traffic, arguments: Sequence[str] | None
) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executor", choices=list(MACHINES), default="simulated")
    parser.add_argument("--tables", nargs="+", choices=list(tables), default=list(tables), metavar="TABLE")
    parser.add_argument("--requests", type=int, default=traffic.requests)
    parser.add_argument("--requests-per-s", type=float, default=traffic.requests_per_s, help="mean offered load")
    parser.add_argument("--seed", type=int, default=traffic.seed)
    parser.add_argument("--repeats", type=int, default=1, help="replays of each row; the tables show medians")
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--scheme", default="fp16")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--costs", type=Path, default=COSTS_FILE, help="fitted step costs of the simulated executor")
    parser.add_argument("--output", type=output_file, help="where the JSON document goes")
    return parser.parse_args(arguments)
