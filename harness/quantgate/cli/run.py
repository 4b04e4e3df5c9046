"""`quantgate run`: the main job."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from quantgate.progress import ProgressReporter
from quantgate_engine.errors import ConfigurationError

if TYPE_CHECKING:
    from quantgate_engine.quant.perturbation import WeightPerturbation

DEFAULT_RESULTS = Path("results")


def run(
    suite: Annotated[str, typer.Argument(help="Suite file, or the name of a bundled suite.")] = "quick",
    policy: Annotated[str | None, typer.Option(help="Policy file or name; default: the suite's own.")] = None,
    model: Annotated[str | None, typer.Option(help="Another model than the suite's.")] = None,
    seed: Annotated[int | None, typer.Option(help="Another seed than the suite's.")] = None,
    results: Annotated[Path, typer.Option(help="Folder that the run's folder is made in.")] = DEFAULT_RESULTS,
    no_text: Annotated[bool, typer.Option("--no-text", help="Keep prompts and answers out of the results.")] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print verdict.json on standard output.")] = False,
    plant_weight_noise: Annotated[
        str | None, typer.Option(hidden=True, help="ARM=SIGMA: plant weight noise, to test the verdict.")
    ] = None,
) -> None:
    """Replay traffic against each arm of a suite, compare speed and quality, and judge.

    Writes results/<run id>/ with report.html and verdict.json; the exit code is the verdict's.

    Example: quantgate run quick --policy mixed
    """
    from quantgate.gate.policy import load_policy
    from quantgate.report.terminal import terminal_table
    from quantgate.resources import find_policy, find_suite, tasks_folder
    from quantgate.run.run_suite import run_suite
    from quantgate.run.session import RunOptions
    from quantgate.suite import load_suite

    suite_path = find_suite(suite)
    loaded = load_suite(suite_path).with_changes(model=model, seed=seed)
    chosen_policy = load_policy(find_policy(policy or loaded.suite.policy, beside=suite_path.parent))
    tasks = loaded.suite.quality.load_tasks(tasks_folder(suite_path)) if loaded.suite.quality else []
    options = RunOptions(
        results=results,
        command=["quantgate", *sys.argv[1:]],
        keep_text=not no_text,
        perturbations=_perturbations(plant_weight_noise, loaded.suite.seed),
    )
    console = Console(stderr=True)
    finished = run_suite(loaded, chosen_policy, tasks, options, ProgressReporter(console))
    if json_output:
        typer.echo(finished.verdict.model_dump_json(by_alias=True, indent=2))
    else:
        terminal_table(finished.run, finished.verdict, Console())
        console.print(f"report: {finished.folder / 'report.html'}", markup=False, highlight=False)
        console.print(f"again:  {shlex.join(options.command)}", markup=False, highlight=False)
    raise typer.Exit(finished.verdict.exit_code)


def _perturbations(option: str | None, seed: int) -> dict[str, WeightPerturbation]:
    from quantgate_engine.quant.perturbation import WeightPerturbation

    if option is None:
        return {}
    arm_id, _, sigma = option.partition("=")
    try:
        return {arm_id: WeightPerturbation(relative_sigma=float(sigma), seed=seed)}
    except ValueError:
        raise ConfigurationError(
            f"--plant-weight-noise is {option!r}; expected ARM=SIGMA, such as int8-w8a16=0.1."
        ) from None
