"""How a `quantgate` process ends: a reader that went away, SIGTERM, Ctrl-C; seen from outside, as a shell sees it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from tests.cli.tiny_suite import write_tiny_suite

from quantgate.cli import main
from quantgate.store.run_folder import load_run, stored_rows

_ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}
_PATIENCE_SECONDS = 120


def _heed_signals() -> None:
    """A process that is started in the background inherits that it is to ignore them."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def started(*arguments: str | Path, **options: object) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "quantgate", *map(str, arguments)],
        **{
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
            "env": _ENVIRONMENT,
            "preexec_fn": _heed_signals,
        }
        | options,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite whose last request comes in an hour."""
    suite = write_tiny_suite(tmp_path_factory.mktemp("endless"))
    trace = suite.parent / "traffic.jsonl"
    *lines, last = trace.read_text().splitlines()
    trace.write_text("\n".join([*lines, json.dumps(json.loads(last) | {"offset": 3600})]))
    return suite


def ends_after(process: subprocess.Popen[str], words: str, number: signal.Signals) -> tuple[int, str]:
    """Sends the signal as soon as the process has said `words`; its exit code and all that it said after them."""
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            break
    process.send_signal(number)
    _, told = process.communicate(timeout=_PATIENCE_SECONDS)
    return process.returncode, told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_every_signal_to_end_leaves_a_run_that_says_so(number: signal.Signals, endless: Path, tmp_path: Path) -> None:
    with started("run", endless, "--results", tmp_path / "results") as process:
        code, told = ends_after(process, "replay: started", number)
    assert code == 130
    [folder] = (tmp_path / "results").iterdir()
    # A first request may or may not be done when the signal comes; the sentence has to fit either way.
    something = stored_rows(folder).get("requests")
    says = "What was measured so far is kept in" if something else "No request is kept; how the run ended is in"
    assert f"{says} {folder}." in told.splitlines()
    assert told.endswith("quantgate: Interrupted.\n")
    assert load_run(folder).manifest.state == "interrupted"
    assert "interrupted" in (folder / "report.html").read_text()
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_while_the_program_is_read_is_one_word(number: signal.Signals, tmp_path: Path) -> None:
    slow = "import sys, time\nprint('reading', file=sys.stderr, flush=True)\ntime.sleep(600)\n"
    (tmp_path / "typer.py").write_text(slow)
    paths = os.pathsep.join([str(tmp_path), *filter(None, [_ENVIRONMENT.get("PYTHONPATH")])])
    with started("doctor", env=_ENVIRONMENT | {"PYTHONPATH": paths}) as process:
        code, told = ends_after(process, "reading", number)
    assert (code, told) == (130, "quantgate: Interrupted.\n")


def test_an_interrupt_before_the_first_step_of_an_event_loop_is_one_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    set_handler = signal.signal

    def and_interrupted(number: signal.Signals, handler: Callable[..., object]) -> object:
        before = set_handler(number, handler)
        if isinstance(handler, partial):
            os.kill(os.getpid(), number)
        return before

    monkeypatch.setattr(signal, "signal", and_interrupted)
    monkeypatch.setattr(main, "app", lambda **_: asyncio.run(asyncio.sleep(600)))
    before = set_handler(signal.SIGINT, signal.default_int_handler)
    try:
        assert main.run_command() == 130
    finally:
        set_handler(signal.SIGINT, before)
    assert capsys.readouterr().err == "quantgate: Interrupted.\n"


def test_a_background_job_that_ignores_ctrl_c_still_heeds_sigterm(endless: Path, tmp_path: Path) -> None:
    ignoring = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)}
    with started("run", endless, "--results", tmp_path / "results", **ignoring) as process:
        code, told = ends_after(process, "replay: started", signal.SIGTERM)
    assert code == 130
    assert told.endswith("quantgate: Interrupted.\n")


def test_an_interrupt_while_loading_claims_nothing_and_leaves_nothing(endless: Path, tmp_path: Path) -> None:
    with started("run", endless, "--results", tmp_path / "results") as process:
        code, told = ends_after(process, "load: started", signal.SIGINT)
    assert code == 130
    assert told.splitlines()[-1] == "quantgate: Interrupted."
    assert "kept" not in told
    assert not (tmp_path / "results").exists()


def test_a_reader_that_went_away_changes_no_exit_code(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with started("--help", stdout=writer) as process:
        _, told = process.communicate(timeout=_PATIENCE_SECONDS)
    assert (process.returncode, told) == (0, "")
    with started("policy", "check", tmp_path / "absent.yaml", stdout=writer, stderr=writer) as process:
        process.communicate(timeout=_PATIENCE_SECONDS)
    os.close(writer)
    assert process.returncode == 2


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs the device that is always full")
def test_a_full_disk_under_the_output_is_told_once_and_is_no_verdict() -> None:
    with Path("/dev/full").open("w") as full:
        with started("--help", stdout=full) as process:
            _, told = process.communicate(timeout=_PATIENCE_SECONDS)
        assert process.returncode == 3
        assert told == "quantgate: The disk is full (while writing results); free some space and run again.\n"
        for stdout, code in ((subprocess.PIPE, 0), (full, 3)):
            with started("--help", stdout=stdout, stderr=full) as process:
                process.communicate(timeout=_PATIENCE_SECONDS)
            assert process.returncode == code


def test_a_verdict_is_the_exit_code_with_nobody_reading_it(tmp_path: Path) -> None:
    suite = write_tiny_suite(tmp_path)
    suite.write_text(suite.read_text().replace("aa: true", "aa: false"))
    policy = tmp_path / "policy.yaml"
    policy.write_text(policy.read_text().replace("aa: {required: false}", "aa: {required: true}"))
    reader, writer = os.pipe()
    os.close(reader)
    with started("run", suite, "--results", tmp_path / "results", stdout=writer) as process:
        process.communicate(timeout=_PATIENCE_SECONDS)
    [folder] = (tmp_path / "results").iterdir()
    with started("gate", folder, stdout=writer) as gate:
        gate.communicate(timeout=_PATIENCE_SECONDS)
    os.close(writer)
    assert (process.returncode, gate.returncode) == (4, 4)
