"""A mistake on the command line is one sentence on standard error and exit code 2, for every command."""

from __future__ import annotations

import re

import pytest

from quantgate.cli import main as main_module


@pytest.fixture
def quantgate(monkeypatch, capsys):
    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["quantgate", *arguments])
        with pytest.raises(SystemExit) as ending:
            main_module.main()
        captured = capsys.readouterr()
        return int(ending.value.code or 0), captured.out, captured.err

    return call


@pytest.mark.parametrize(
    ("arguments", "words", "command"),
    [
        (["nosuch"], "No such command 'nosuch'", "quantgate"),
        (["judge"], "Missing argument 'run'", "quantgate judge"),
        (["gate", "a", "b"], "Got unexpected extra argument", "quantgate gate"),
        (["replay", "x", "--sped", "3"], "No such option: --sped", "quantgate replay"),
        (["judge", "x", "--items", "0"], "Invalid value for '--items'", "quantgate judge"),
        (["run", "--blocks", "x"], "Invalid value for '--blocks'", "quantgate run"),
        (
            ["serve", "x", "--kernel-set", "fast"],
            "Invalid value for '--kernel-set': 'fast' is not one of 'auto', 'reference', 'cpu', 'triton'",
            "quantgate serve",
        ),
        (
            ["bench", "--kv-dtype", "Value error, x"],
            "Invalid value for '--kv-dtype': 'Value error, x' is not one of 'auto', 'int8'",
            "quantgate bench",
        ),
        (["review"], "Missing command", "quantgate review"),
        (["trace"], "Missing command", "quantgate trace"),
        (["policy", "chek"], "No such command 'chek'", "quantgate policy"),
    ],
)
def test_a_usage_error_is_one_sentence(quantgate, arguments, words, command):
    code, out, error = quantgate(*arguments)
    assert (code, out) == (2, "")
    assert error.startswith(f"quantgate: {words}")
    assert error.endswith(f"; `{command} --help` tells what is expected.\n")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [("fetch",), ("run",), ("gate",), ("report",), ("policy", "check"), ("compare",), ("policy", "init"), ("replay",)],
    ids=" ".join,
)
def test_a_path_that_cannot_be_is_told_whatever_it_is_for(quantgate, arguments):
    name = "x" * 300
    code, _, error = quantgate(*arguments, name)
    assert code == 2
    assert error.startswith(f"quantgate: {name}")
    assert "File name too long" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (("run", "quick", "--results", ""), "--results"),
        (("report", "run", "-o", ""), "-o"),
        (("init", "--dir="), "--dir"),
        (("policy", "init", ""), "argument 3"),
    ],
)
def test_an_empty_text_is_never_taken_for_the_current_folder(quantgate, arguments, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, error = quantgate(*arguments)
    assert code == 2
    assert error.startswith(f"quantgate: {place}: expected a value, got an empty text;")
    assert not list(tmp_path.iterdir())


def test_no_command_shows_the_commands(quantgate):
    code, out, _ = quantgate()
    assert code == 2
    assert "replay" in out


def test_the_version_is_told(quantgate):
    code, out, _ = quantgate("--version")
    assert code == 0
    assert re.fullmatch(r"quantgate \d+\.\d+\.\d+\n", out)


def test_bytes_that_are_no_text_are_refused_before_anything_is_written(quantgate):
    code, out, error = quantgate("run", "b\udcff.yaml")
    assert (code, out) == (2, "")
    assert error == (
        r"quantgate: Argument 2, b\udcff.yaml, holds bytes that are not UTF-8; rename the file, or write it anew." "\n"
    )
