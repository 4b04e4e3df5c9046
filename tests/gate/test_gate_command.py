"""`quantgate gate` on stored runs: exit code, verdict.json, standard output."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from quantgate.cli.gate import gate
from quantgate.gate.policy import load_policy
from quantgate.resources import bundled_root
from quantgate.store.run_folder import LoadedRun, RunFolder
from quantgate_engine.errors import ConfigurationError

app = typer.Typer()
app.command()(gate)


@pytest.fixture
def stored(tmp_path: Path, run_of: Callable[..., LoadedRun], arm: Any) -> Callable[..., Path]:
    def store(policy: str | None, **changes: Any) -> Path:
        path = bundled_root() / "suites" / "policies" / f"{policy}.yaml"
        document = load_policy(path).model_dump(mode="json", by_alias=True) if policy else None
        run = run_of(arm("fp16", "baseline"), arm("fp16-aa", "aa"), arm("other", **changes), policy=document)
        folder = RunFolder(tmp_path, "run")
        folder.write_manifest(run.manifest)
        for name in ("requests", "steps", "quality"):
            folder.write_table(name, getattr(run, name))
        return tmp_path

    return store


@pytest.mark.parametrize(("changes", "code", "word"), [({}, 0, "ship"), ({"kl": 0.2}, 1, "do_not_ship")])
def test_the_runs_own_policy_decides_and_the_verdict_is_kept(
    stored: Callable[..., Path], changes: dict[str, Any], code: int, word: str
) -> None:
    folder = stored("self-check", **changes)
    result = CliRunner().invoke(app, [str(folder), "--json"])
    assert result.exit_code == code, result.output
    assert json.loads(result.stdout)["verdict"] == word
    assert json.loads((folder / "verdict.json").read_text()) == json.loads(result.stdout)


def test_another_policy_may_decide_otherwise(stored: Callable[..., Path]) -> None:
    folder = stored("self-check")
    result = CliRunner().invoke(app, [str(folder), "--policy", "mixed"])
    assert result.exit_code == 1
    assert "do not ship" in result.output.lower()


def test_a_run_without_a_policy_asks_for_one(stored: Callable[..., Path]) -> None:
    result = CliRunner().invoke(app, [str(stored(None))])
    assert isinstance(result.exception, ConfigurationError)
    assert "name one with --policy" in str(result.exception)
