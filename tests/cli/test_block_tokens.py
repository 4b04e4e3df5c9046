"""The block size of a trace is said on the command line or in a suite, and reaches the reader."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.traffic.lengths_files import block_row, write_lines
from typer.testing import CliRunner

from quantgate.cli.main import app
from quantgate.run.workload_phase import read_traffic
from quantgate.suite import WorkloadConfig
from quantgate_engine.errors import ConfigurationError

# 33 tokens are three blocks of 16, and of no size that is the format's own.
ROW = block_row(0, 33, 4, [7, 8, 9])
COMMANDS = {
    "replay": ("replay",),
    "run": ("run", "--baseline", "http://a:1", "--candidate", "http://b:1", "--log"),
}


def complaint(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, ConfigurationError), result.exception
    return str(result.exception)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_size_that_does_not_fit_either_is_refused(tmp_path: Path, command: str) -> None:
    trace = str(write_lines(tmp_path / "m.jsonl", ROW))
    results = ("--results", str(tmp_path))
    assert "in blocks of 512, got 3, which fits blocks of 16; " in complaint(*COMMANDS[command], trace, *results)
    told = complaint(*COMMANDS[command], trace, *results, "--block-tokens", "8")
    assert "expected 5 ids for 33 prompt tokens in blocks of 8, got 3, which fits blocks of 16; " in told


def test_a_suite_says_it_too(tmp_path: Path) -> None:
    trace = write_lines(tmp_path / "m.jsonl", ROW)
    workload = WorkloadConfig(trace="m.jsonl", block_tokens=16, blocks=1)
    with pytest.raises(ConfigurationError, match="The trace tells lengths without texts"):
        read_traffic(trace, workload, None, seed=0)
    with pytest.raises(ConfigurationError, match="in blocks of 512, got 3"):
        read_traffic(trace, workload.model_copy(update={"block_tokens": None}), None, seed=0)


def test_a_suite_does_not_heed_the_flag() -> None:
    assert complaint("run", "quick", "--block-tokens", "16").startswith("--block-tokens needs --baseline and --")
