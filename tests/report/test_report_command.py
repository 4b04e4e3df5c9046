"""`quantgate report`: from a run's folder to a file."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
import typer
from tests.report.stored_run import build_run, build_verdict
from typer.testing import CliRunner

from quantgate.cli.report import report
from quantgate.store.run_folder import RunFolder
from quantgate_engine.errors import ConfigurationError, RunError

app = typer.Typer()
app.command()(report)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run = build_run(requests=80, items=8)
    stored = RunFolder.create(tmp_path / "results", now=datetime(2026, 1, 1, tzinfo=UTC), random=Random(1))
    stored.write_manifest(run.manifest)
    for name in ("requests", "steps", "quality"):
        stored.write_table(name, getattr(run, name))
    stored.write_text("verdict.json", build_verdict().model_dump_json(by_alias=True))
    return stored.path


def invoke(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_it_writes_into_the_run_and_names_the_file(folder: Path) -> None:
    printed = json.loads(invoke(folder, "--json"))
    assert printed == {"reports": [str(folder / "report.html")]}
    assert "Do not ship" in (folder / "report.html").read_text(encoding="utf-8")


def test_it_writes_where_it_is_told(folder: Path, tmp_path: Path) -> None:
    invoke(folder, "--output", tmp_path / "one.html", "--price-per-hour", "2")
    assert "at 2 per hour" in (tmp_path / "one.html").read_text(encoding="utf-8")
    (tmp_path / "several").mkdir()
    invoke(folder, folder, "--output", tmp_path / "several")
    assert len(list((tmp_path / "several").iterdir())) == 1


def test_a_pipe_is_not_replaced_by_a_report(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigurationError, match="is a device, a pipe or a socket"):
        invoke(folder, "--output", tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_a_run_without_a_verdict_is_reported(folder: Path) -> None:
    (folder / "verdict.json").unlink()
    invoke(folder)
    assert "Nothing was judged" in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "said"),
    [("{", "cannot be read as JSON"), ('{"schema": "quantgate.verdict/9"}', "quantgate.verdict/9"),
     ('{"schema": "quantgate.verdict/1"}', "field")],
)  # fmt: skip
def test_a_damaged_verdict_is_one_sentence(folder: Path, content: str, said: str) -> None:
    (folder / "verdict.json").write_text(content)
    with pytest.raises(RunError, match=said):
        invoke(folder)
    assert not (folder / "report.html").exists()


def test_several_runs_need_a_folder(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="name an existing folder"):
        invoke(folder, folder, "--output", tmp_path / "one.html")
    with pytest.raises(ConfigurationError, match="is no folder"):
        invoke(folder, "--output", tmp_path / "missing" / "one.html")
    with pytest.raises(ConfigurationError, match="is not a run folder"):
        invoke(tmp_path)
