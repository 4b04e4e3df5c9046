"""`quantgate trace synth`: a drawn trace in our own format, asked beside found, and one sentence for mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.docs.pages import read, section, table_rows, words_in_code
from typer.testing import CliRunner

from quantgate.cli.main import app
from quantgate.traces.reader import read_trace
from quantgate_engine.errors import ConfigurationError


@pytest.fixture
def azure(tmp_path: Path) -> Path:
    path = tmp_path / "azure.csv"
    rows = [f"2024-05-10 00:00:{at // 4:02d}.{at % 4}000001+00:00,{100 + at},{1 + at}" for at in range(80)]
    path.write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *rows]))
    return path


def synth(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, ["trace", "synth", *map(str, arguments)])


def document(*arguments: str | Path) -> Any:
    result = synth(*arguments, "--json")
    assert result.exit_code == 0, result.exception
    return json.loads(result.stdout)


def test_the_drawn_trace_reads_back_and_is_the_same_under_one_seed(tmp_path: Path, azure: Path) -> None:
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    told = document(azure, "--out", first, "--duration", "100", "--rate", "5", "--seed", "3")
    assert told["rows"] == len(read_trace(first)) == pytest.approx(500, rel=0.3)
    assert told["asked"]["rate_rps"] == 5
    assert told["found"]["rate_rps"] == told["rows"] / 100
    document(azure, "--out", second, "--duration", "100", "--rate", "5", "--seed", "3")
    assert first.read_bytes() == second.read_bytes()
    document(azure, "--out", second, "--duration", "100", "--rate", "5", "--seed", "4", "--force")
    assert first.read_bytes() != second.read_bytes()


def test_speed_multiplies_the_recorded_rate(tmp_path: Path, azure: Path) -> None:
    fit = document(azure, "--fit-only")
    told = document(azure, "--out", tmp_path / "out.jsonl", "--speed", "3")
    assert told["asked"]["rate_rps"] == pytest.approx(3 * fit["rate_rps"])
    assert told["duration_s"] == fit["duration_s"]


def test_the_page_tells_every_field(tmp_path: Path, azure: Path) -> None:
    told = document(azure, "--out", tmp_path / "out.jsonl")
    fit = document(azure, "--fit-only", "--window", "5")
    assert len(fit["windows"]) == 4
    page = section(read("docs/commands/trace.md"), "## synth")
    words = {name for row in table_rows(page) for name in words_in_code(row[0]) if not name.startswith("--")}
    assert words == (told.keys() | fit.keys()) - {"schema"}
    assert told["asked"].keys() == told["found"].keys()
    assert {*told["asked"], *fit["windows"][0], told["schema"], fit["schema"]} <= set(words_in_code(page))


def test_people_read_asked_beside_found(tmp_path: Path, azure: Path) -> None:
    printed = synth(azure, "--out", tmp_path / "out.jsonl").stdout
    assert "rate_rps: asked 4.0" in printed
    assert "starts/s, CV" in synth(azure, "--fit-only").stdout


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--rate", "1", "--speed", "2", "--fit-only"], "--rate and --speed both"),
        (["--duration", "0", "--fit-only"], "--duration is 0; expected a number above 0"),
        (["--window", "nan", "--fit-only"], "--window is nan; expected a number above 0"),
        ([], "Neither --out nor --fit-only"),
    ],
)
def test_mistakes_are_told(azure: Path, flags: list[str], message: str) -> None:
    error = synth(azure, *flags).exception
    assert isinstance(error, ConfigurationError)
    assert message in str(error)
