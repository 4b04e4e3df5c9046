"""Any number of results side by side: a table for all, paired intervals for runs of one plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from quantgate.comparison.arm_choice import ArmPair
from quantgate.comparison.paired import PairedComparison, compare_runs, same_plan
from quantgate.comparison.stored_run import results_of_run
from quantgate.foreign_results.measured_result import MeasuredResult
from quantgate.foreign_results.read import read_foreign_results
from quantgate.store.run_folder import MANIFEST_FILE, LoadedRun, load_run
from quantgate_engine.counted import counted, plural
from quantgate_engine.errors import ConfigurationError

UNPAIRED = (
    "Unpaired: different requests, different times: no verdict. A difference between such columns can come from the "
    "traffic, the machine or the tool as well as from the model."
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """results: the columns. paired: runs of the first run's plan beside it. unpaired: what stands by itself."""

    results: list[MeasuredResult]
    paired: list[PairedComparison]
    unpaired: list[str]


def compare(
    paths: Sequence[Path], *, format_name: str | None = None, arms: ArmPair | None = None, seed: int = 0
) -> Comparison:
    """Reads and compares run folders and result files of other tools.

    Raises ConfigurationError (unknown, damaged or too few results) and RunError (a damaged run).
    """
    runs: list[LoadedRun] = []
    results: list[MeasuredResult] = []
    foreign: list[str] = []
    for path in paths:
        if (path / MANIFEST_FILE).is_file():
            run = load_run(path)
            runs.append(run)
            results += _results_of(run, path)
        else:
            found = [_with_failures_noted(result) for result in read_foreign_results(path, format_name)]
            results += found
            foreign += [result.label for result in found]
    if len(results) < 2:
        raise ConfigurationError(
            f"{', '.join(map(str, paths))}: fewer than two results to compare; name two run folders or "
            "files, such as results/20270131T101500Z-3f9c benchmarks.json."
        )
    paired: list[PairedComparison] = []
    alone: list[str] = []
    for run in runs[1:]:
        comparisons = compare_runs(runs[0], run, arms, seed=seed) if same_plan(runs[0], run) else []
        paired += comparisons
        if not comparisons:
            alone.append(run.manifest.run_id)
    if arms is not None and not paired:
        raise ConfigurationError(
            f"--arms pairs arms of two runs of the same plan, which are not among {', '.join(map(str, paths))}; leave "
            "it out, or name two such run folders."
        )
    return Comparison(results, paired, alone + foreign)


def _with_failures_noted(result: MeasuredResult) -> MeasuredResult:
    """Other tools tell the times of answered requests; ours count the unanswered ones as infinitely slow."""
    if not result.failed:
        return result
    note = (
        f"{counted(result.failed, 'request')} failed and {plural(result.failed, 'stands', 'stand')} in none of its "
        "times, which look faster for it; quantgate's percentiles count an unanswered request as infinitely slow."
    )
    return replace(result, notes=(*result.notes, note))


def _results_of(run: LoadedRun, path: Path) -> list[MeasuredResult]:
    found = results_of_run(run, str(path))
    if not found:
        raise ConfigurationError(f"{path}: the run ended before any request was served; name a run that has results.")
    return found
