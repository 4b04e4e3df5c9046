"""`quantgate doctor --kernels`"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from quantgate.cli.doctor import doctor
from quantgate.doctor import gpu_kernels
from quantgate_engine.errors import ConfigurationError, RunError
from quantgate_kernels.gpu import device

needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="no Triton here")

INSPECTED = {
    "kernel": "some_kernel",
    "case": "some case",
    "architecture": "sm90",
    "variant": "hash",
    "num_warps": 4,
    "facts": {
        "registers": 255,
        "spills": 3,
        "shared_bytes": 4096,
        "load_bytes": {"4": 16, "16": 48},
        "matrix": ["HGMMA.64"],
        "instructions": 100,
    },
    "work": {"shape": "2 x 3", "bytes_moved": 12_000_000, "operations": 1_000_000_000, "width": "16-bit"},
    "roofline": {
        "device": "H100 SXM",
        "seconds": 4e-6,
        "limited_by": "memory",
        "memory_share": 1.0,
        "arithmetic_share": 0.25,
    },
}
FAILED = {"case": "another case", "architecture": "sm90", "problem": "CompilationError: at 1:2 [no such thing]"}
DONE = {"done": 2, "all": 2}


@pytest.fixture
def run_doctor():
    app = typer.Typer()
    app.command()(doctor)
    return lambda *arguments: CliRunner().invoke(app, list(arguments))


@pytest.fixture
def triton_is_here(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: object())
    monkeypatch.setattr(device, "triton_version", lambda: None)


def test_without_triton_it_is_told_how_to_get_it(run_doctor, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    result = run_doctor("--kernels")
    assert isinstance(result.exception, ConfigurationError)
    assert str(result.exception) == 'Triton is not installed; `pip install "triton>=3.6"` brings it.'
    assert result.stdout == ""


def test_a_triton_that_is_too_old_is_told_with_its_version(run_doctor, monkeypatch, triton_is_here):
    monkeypatch.setattr(device, "triton_version", lambda: "3.5.1")
    error = run_doctor("--kernels").exception
    assert isinstance(error, ConfigurationError)
    assert str(error).startswith("Triton 3.5.1 is installed, and the kernels need 3.6 or newer; `pip install")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("--kernels", "--arch", "sm_91"),
            "--arch is 'sm_91'; the kernels have tables for sm_80, sm_90, sm_100, gfx94",
        ),
        (("--kernels", "--kernel", "nothing"), "--kernel is 'nothing', which is in no kernel's name; there are decode"),
        (("--arch", "sm_90"), "--arch and --kernel choose among the kernels of --kernels; add it."),
        (("--kernel", "decode"), "--arch and --kernel choose among the kernels of --kernels; add it."),
    ],
)
def test_a_wrong_filter_is_one_sentence(run_doctor, arguments, sentence):
    error = run_doctor(*arguments).exception
    assert isinstance(error, ConfigurationError)
    assert str(error).startswith(sentence)
    assert "\n" not in str(error)


def test_what_does_not_compile_is_a_line_and_an_exit_code(run_doctor, monkeypatch, triton_is_here):
    monkeypatch.setattr(gpu_kernels, "_lines", lambda *_: (line for line in (INSPECTED, FAILED, DONE)))
    result = run_doctor("--kernels", "--arch", "sm_90")
    assert result.exit_code == 3
    (failed,) = (line for line in result.stdout.splitlines() if line.startswith("another case"))
    assert failed == "another case: does not compile: CompilationError: at 1:2 [no such thing]"
    row = result.stdout.split("some case", 1)[1].splitlines()[0].split()
    assert row == ["255", "3", "4,096", "HGMMA.64", "75", "%", "12", "MB", "1", "G", "4", "100", "%", "25", "%"]
    assert "Traceback" not in result.output
    monkeypatch.setattr(gpu_kernels, "_lines", lambda *_: (line for line in (INSPECTED, DONE)))
    assert run_doctor("--kernels", "--arch", "sm_90").exit_code == 0


def test_a_process_that_dies_is_told_with_its_last_words(run_doctor, monkeypatch, triton_is_here):
    monkeypatch.setattr(gpu_kernels, "INSPECTION", "quantgate_kernels.no_such_module")
    error = run_doctor("--kernels", "--arch", "sm90").exception
    assert isinstance(error, RunError)
    assert str(error).startswith("The inspection of sm90 ended before it was done (")
    assert "No module named quantgate_kernels.no_such_module" in str(error)


@needs_triton
def test_one_kernel_for_one_architecture(run_doctor, monkeypatch):
    # Set where someone tries the interpreter, in which nothing is compiled.
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    result = run_doctor("--kernels", "--arch", "sm_90", "--kernel", "silu", "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["schema"] == "quantgate.kernels/1"
    assert document["failed"] == []
    assert document["architectures"]["sm90"]["published"]["device"] == "H100 SXM"
    (gate,) = document["kernels"]
    assert (gate["kernel"], gate["case"], gate["architecture"]) == ("silu_and_mul_kernel", "gate", "sm90")
    assert gate["facts"]["spills"] == 0
    assert gate["facts"]["registers"] > 0
    assert set(gate["facts"]["load_bytes"]) == {"16"}
    # Two halves read and one written of 4 rows of 16-bit numbers.
    assert gate["work"]["bytes_moved"] == 3 * 4 * 14336 * 2
    assert "sm90: done" in result.stderr


@needs_triton
def test_a_case_that_does_not_compile_leaves_the_others_alone(capfd):
    from quantgate_kernels.gpu.ahead import __main__ as ahead
    from quantgate_kernels.gpu.ahead.catalogue import Case
    from quantgate_kernels.gpu.ahead.inspection import Failed

    def launch(architecture: str) -> None:
        raise ValueError("\nat 3:4: no such operation\n    ^")

    (failed,) = ahead._inspect("sm90", "", Case("broken", launch))
    assert failed == Failed("broken", "sm90", "ValueError: at 3:4: no such operation")
    assert "Traceback" in capfd.readouterr().err


def _survey(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "quantgate", "doctor", "--kernels", "--kernel", "silu", *arguments]
    environment = os.environ | {"TRITON_CACHE_DIR": str(cache)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@needs_triton
def test_a_cache_that_cannot_be_written_is_no_fault_of_a_kernel(tmp_path):
    occupied = tmp_path / "file"
    occupied.touch()
    result = _survey(occupied / "cache", "--arch", "sm_90")
    assert (result.returncode, result.stdout) == (3, "")
    told = result.stderr.splitlines()[-1]
    assert told.startswith("quantgate: The inspection of sm90 ended before it was done ([Errno 20] Not a directory: ")
    assert "TRITON_CACHE_DIR and TMPDIR choose other folders" in told


@needs_triton
@pytest.mark.parametrize(("architecture", "code"), [("sm_90", "*.cubin"), ("gfx942", "*.amdgcn")])
def test_damaged_machine_code_in_the_cache_is_compiled_anew(tmp_path, architecture, code):
    first = _survey(tmp_path, "--arch", architecture, "--json")
    (kept,) = tmp_path.rglob(code)
    kept.write_bytes(kept.read_bytes()[:10])
    assert _survey(tmp_path, "--arch", architecture, "--json").stdout == first.stdout
    assert kept.stat().st_size > 10
