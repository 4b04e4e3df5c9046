"""The command line: stages in order, a document that is whole after each, tables, and the bars at the end."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from benchmarks.on_gpu.bars import Bar, bars
from benchmarks.on_gpu.machine import clocks, described
from benchmarks.on_gpu.place import Place, gpu, nowhere
from benchmarks.on_gpu.printed import print_bars, print_stage
from benchmarks.on_gpu.stages import (
    DONE,
    FAILED,
    LIMITS,
    SKIPPED,
    Session,
    Stage,
    chosen,
    outcome_of,
    with_limits,
)
from rich.console import Console

from quantgate_kernels.unavailable import KernelSetUnavailableError

Document = dict[str, Any]
BEGAN = "QUANTGATE_GPU_BENCHMARK_BEGAN"
"""Environment variable of a process that goes on for another: when that one began, and which document is theirs."""
WIDTH = 150


def run(options: argparse.Namespace) -> int:
    """0 where every stage that was begun is done, every result right and the document written; 2 where none can begin.

    options: as `options.parsed` has them.
    """
    try:
        todo = chosen(options.stages)
        place = nowhere(options.arch) if options.dry_run else gpu()
    except ValueError as unknown:
        return _refused(str(unknown))
    except KernelSetUnavailableError as unavailable:
        return _refused(
            f"No GPU for the kernels: {unavailable}. With --dry-run, all is laid out and compiled, and nothing run."
        )
    console = Console(width=WIDTH)
    began, document = _begun(options.output, place)
    session = Session(place)
    written = options.output is not None
    for stage in todo:
        outcome = document["stages"].get(stage.name)
        if outcome is None:
            outcome = _next(stage, session, None if options.dry_run else options.budget_s - (time.time() - began))
            _keep(document, stage.name, outcome, place, began)
            written = options.output is not None and _write(document, options.output)
            print_stage(console, stage.name, outcome)
            if outcome["outcome"] == FAILED and written and not _answers(place):
                _go_on_in_another_process(began)
        if stage.name == LIMITS:
            session = with_limits(session, outcome)
    print_bars(console, _bars(document))
    if not written:
        print(json.dumps(document))
    lost = options.output is not None and not written
    return 0 if all(map(_right, document["stages"].values())) and not lost else 1


def _refused(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 2


def _begun(output: Path | None, place: Place) -> tuple[float, Document]:
    """When this began, and the document so far: another process's, where this one goes on for it."""
    if output is not None and BEGAN in os.environ:
        return float(os.environ[BEGAN]), json.loads(output.read_text(encoding="utf-8"))
    return time.time(), {
        "schema": 1,
        "dry_run": place.dry,
        "device": described(place),
        "clocks": {"before": clocks(place)},
        "stages": {},
    }


def _next(stage: Stage, session: Session, seconds_left: float | None) -> dict[str, Any]:
    if seconds_left is not None and stage.seconds > seconds_left:
        why = f"it takes about {stage.seconds:.0f} s, and {max(0.0, seconds_left):.0f} are left of the budget"
        return {"outcome": SKIPPED, "error": why, "rows": [], "seconds": 0.0}
    return outcome_of(stage, session)


def _keep(document: Document, name: str, outcome: dict[str, Any], place: Place, began: float) -> None:
    document["stages"][name] = outcome
    document["clocks"][name] = clocks(place)
    document["seconds"] = round(time.time() - began, 1)
    document["bars"] = [{**asdict(bar), "met": bar.met} for bar in _bars(document)]


def _answers(place: Place) -> bool:
    """A kernel that reads what is not there leaves a GPU that refuses this process everything from then on."""
    if place.dry:
        return True
    try:
        torch.cuda.synchronize(place.torch_device)
    except RuntimeError:
        return False
    return True


def _go_on_in_another_process(began: float) -> None:
    sys.stdout.flush()
    os.environ[BEGAN] = str(began)
    os.execv(sys.executable, [sys.executable, *sys.argv])


def _bars(document: Document) -> list[Bar]:
    done = document["stages"]
    timed = [row for name, outcome in done.items() if name.startswith("time ") for row in outcome["rows"]]
    limits = done.get(LIMITS, {}).get("rows")
    return bars(timed, limits[0]["read_bytes_per_s"] if limits else None)


def _write(document: Document, output: Path) -> bool:
    """Whether it could be: what a GPU was measured at is not thrown away because a disk is full."""
    partial = output.with_name(f".{output.name}.partial")
    try:
        partial.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        partial.replace(output)
    except OSError as failure:
        with suppress(OSError):
            partial.unlink()
        print(f"{output} cannot be written ({failure}); it is tried again after the next stage.", file=sys.stderr)
        return False
    return True


def _right(outcome: dict[str, Any]) -> bool:
    if outcome["outcome"] != DONE:
        return outcome["outcome"] == SKIPPED
    return all(row.get("right") is not False for row in outcome["rows"])
