"""`quantgate policy`: check a policy file, and propose one from a measured baseline."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from quantgate.cli.flag_values import finite
from quantgate_engine.errors import ConfigurationError

if TYPE_CHECKING:
    from quantgate.setup_files.slo_proposal import ClassProposals

DEFAULT_POLICY_FILE = Path("policy.yaml")

policy_commands = typer.Typer(
    name="policy",
    help="Check a policy file, or propose one from the baseline that a run measured.",
)


@policy_commands.command()
def check(
    policy: Annotated[str, typer.Argument(help="Policy file, or the name of a ready policy.")],
    json_output: Annotated[bool, typer.Option("--json", help="Print the policy as JSON.")] = False,
) -> None:
    """Check a policy, and say in words what it asks for.

    Exit code 2 with file, line and field where something is wrong, or where a waiver has run out.

    Example: quantgate policy check chat
    """
    from quantgate.gate.corrections import waivers_by_arm
    from quantgate.gate.policy import load_policy
    from quantgate.resources import find_policy
    from quantgate.setup_files.policy_words import policy_words

    path = find_policy(policy)
    loaded = load_policy(path)
    waivers_by_arm(loaded, datetime.now(UTC).date())
    words = policy_words(loaded)
    if json_output:
        document = {
            "path": str(path),
            "valid": True,
            "policy": loaded.model_dump(mode="json", by_alias=True),
            "sha256": loaded.sha256(),
            "words": [line.strip() for line in words],
        }
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    console = Console(soft_wrap=True)
    console.print(Text(f"{path}: valid; policy {loaded.name}. {loaded.description}".rstrip()))
    for line in words:
        console.print(Text(line))


@policy_commands.command()
def init(
    run: Annotated[Path | None, typer.Argument(help="Folder of a run whose baseline gives the limits.")] = None,
    from_run: Annotated[Path | None, typer.Option(help="The same, as an option.")] = None,
    out: Annotated[Path, typer.Option(help="File to write.")] = DEFAULT_POLICY_FILE,
    headroom: Annotated[
        float, typer.Option(min=1.0, help="Factor on the measured upper limit.", callback=finite)
    ] = 1.2,
    base: Annotated[
        str | None, typer.Option(help="Policy for rules and gain; default: the ready one for the traffic's classes.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file where it exists.")] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print what is proposed as JSON.")] = False,
) -> None:
    """Propose a policy: SLO limits per class from what a run measured on its baseline, the rest from a ready policy.

    A limit is the upper confidence limit of p99 (or p95, where requests are few) times the headroom.

    Example: quantgate policy init results/20270131T101500Z-3f9c --headroom 1.3
    """
    from quantgate.setup_files.policy_init import propose_policy
    from quantgate.setup_files.slo_proposal import has_limit
    from quantgate.setup_files.write_files import write_files
    from quantgate.store.run_folder import load_run

    folder = run or from_run
    if folder is None or (run is not None and from_run is not None):
        raise ConfigurationError(
            "Name one run folder to take the limits from, such as quantgate policy init results/20270131T101500Z-3f9c."
        )
    proposed = propose_policy(load_run(folder), out.stem, base=base, headroom=headroom)
    write_files({out: proposed.text}, force=force)
    if json_output:
        document = {
            "path": str(out), "base": proposed.base, "arm": proposed.arm_id, "headroom": headroom,
            "slo": _as_json(proposed.proposals),
        }  # fmt: skip
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    console = Console(stderr=True, soft_wrap=True)
    for line in proposed.text.splitlines():
        console.print(Text(line))
    if not has_limit(proposed.proposals):
        console.print(Text("No class got a limit; the file says why, and how many requests would carry one."))
    console.print(Text(f"written: {out}; check it with: quantgate policy check {out}"))


def _as_json(proposals: Mapping[str, ClassProposals]) -> dict[str, Any]:
    return {name: {metric: asdict(found) for metric, found in own.items()} for name, own in proposals.items()}
