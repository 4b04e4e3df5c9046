"""`quantgate gate`: judge a stored run, again or under another policy."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from quantgate_engine.errors import ConfigurationError

if TYPE_CHECKING:
    from quantgate.gate.policy import Policy
    from quantgate.store.run_folder import LoadedRun


def gate(
    run: Annotated[Path, typer.Argument(help="Folder of a run, such as results/20270131-101500-abc.")],
    policy: Annotated[str | None, typer.Option(help="Policy file or name; default: the run's own.")] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print verdict.json on standard output.")] = False,
) -> None:
    """Judge a run against a policy and replace its verdict.json; the exit code is the verdict's.

    Example: quantgate gate results/20270131-101500-abc --policy chat
    """
    from quantgate.gate.judge import judge
    from quantgate.report.terminal import terminal_table
    from quantgate.store.run_folder import RunFolder, load_run

    loaded = load_run(run)
    chosen = _policy(loaded, run, policy)
    verdict = judge(loaded, chosen, today=datetime.now(UTC).date(), seed=loaded.manifest.seed)
    document = verdict.model_dump_json(by_alias=True, indent=2)
    written = RunFolder(run, loaded.manifest.run_id).write_text("verdict.json", document + "\n")
    if json_output:
        typer.echo(document)
    else:
        terminal_table(loaded, verdict, Console())
        Console(stderr=True, soft_wrap=True).print(f"verdict: {written}", markup=False, highlight=False)
    raise typer.Exit(verdict.exit_code)


def _policy(loaded: LoadedRun, run: Path, asked: str | None) -> Policy:
    from quantgate.gate.policy import load_policy, stored_policy
    from quantgate.resources import find_policy

    if asked is not None:
        return load_policy(find_policy(asked))
    if loaded.manifest.policy is None:
        raise ConfigurationError(f"{run} was not run under a policy; name one with --policy, such as --policy mixed.")
    return stored_policy(loaded.manifest.policy, f"{run / 'run.json'}, policy")
