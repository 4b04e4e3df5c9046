"""benchmarks/gpu.py without a GPU: some of it laid out and compiled; stages that fail, and a budget that ends."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from benchmarks.on_gpu.options import parsed
from tests.gpu.triton_processes import INSTALLED, MISSING, ROOT, TRITONS, run_python

from quantgate_kernels.types import Int8DynamicWeight, ReorderedWeight, stored_bytes

needs_triton = pytest.mark.skipif(MISSING[INSTALLED] is not None, reason=str(MISSING[INSTALLED]))


@pytest.mark.parametrize("triton", TRITONS)
def test_a_dry_run_lays_out_and_compiles(triton: str, tmp_path: Path) -> None:
    output = tmp_path / "gpu.json"
    asked = ["--dry-run", "--arch", "sm80", "--stages", "time rows", "engine fp16", "--output", str(output)]
    finished = run_python(["benchmarks/gpu.py", *asked], triton)
    assert finished.returncode == 0, finished.stdout[-2000:] + finished.stderr[-4000:]
    document = json.loads(output.read_text())
    assert document["dry_run"] is True
    assert document["device"]["architecture"] == "sm80"
    assert {name: outcome["outcome"] for name, outcome in document["stages"].items()} == dict.fromkeys(
        ("limits", "time rows", "engine fp16"), "done"
    )
    timed, engine = (document["stages"][name]["rows"] for name in ("time rows", "engine fp16"))
    assert {row["kernel"] for row in timed} == {
        "rms_norm", "silu_and_mul", "rope and KV write", "copy blocks", "draw", "dequantize", "quantize tokens",
    }  # fmt: skip
    assert all(row["kernels"] and row["bytes"] and row["seconds"] is None for row in timed)
    assert {row["weight_bytes"] for row in engine} == {16_060_522_496}
    attention = {"prefill_attention_kernel", "decode_attention_kernel"}
    assert attention <= {name.partition(":")[0] for row in engine for name in row["kernels"]}
    assert all(bar["met"] is None for bar in document["bars"])
    assert "not measured" in finished.stdout


@pytest.fixture
def command() -> ModuleType:
    """It imports Triton."""
    return importlib.import_module("benchmarks.on_gpu.command")


def outcomes(path: Path) -> dict[str, Any]:
    return {name: outcome["outcome"] for name, outcome in json.loads(path.read_text())["stages"].items()}


@needs_triton
def test_a_stage_that_fails_says_so_and_the_others_go_on(
    command: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output, seen = tmp_path / "gpu.json", []

    def broken(_session: object) -> list[dict[str, Any]]:
        raise RuntimeError("no [bold] kernel")

    def after(_session: object) -> list[dict[str, Any]]:
        seen.append(outcomes(output))
        return []

    stages = [command.Stage("check one", 1, broken), command.Stage("check two", 1, after)]
    monkeypatch.setattr(command, "chosen", lambda _names: stages)
    assert command.run(parsed(None, ["--dry-run", "--output", str(output)])) == 1
    assert seen == [{"check one": "failed"}]
    assert outcomes(output) == {"check one": "failed", "check two": "done"}
    assert "check one: failed RuntimeError: no [bold] kernel" in capsys.readouterr().out


@needs_triton
def test_a_wrong_result_is_an_exit_code(command: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for right, code in ((True, 0), (False, 1), (None, 0)):
        checked = {"kernel": "k", "case": "c", "largest_error": 1.0, "error": 1.0, "limit": 0.5, "right": right}
        stage = command.Stage("check one", 1, lambda _session, row=checked: [row])
        monkeypatch.setattr(command, "chosen", lambda _names, one=stage: [one])
        options = parsed(None, ["--dry-run", "--output", str(tmp_path / f"{right}.json")])
        assert command.run(options) == code


@needs_triton
def test_stages_that_would_pass_the_budget_are_skipped(command: ModuleType) -> None:
    session = command.Session(command.nowhere("sm90"))
    stage = command.Stage("check one", 40, lambda _session: [])
    assert command._next(stage, session, 41.0)["outcome"] == "done"
    skipped = command._next(stage, session, 39.4)
    assert skipped["outcome"] == "skipped"
    assert skipped["error"] == "it takes about 40 s, and 39 are left of the budget"


@needs_triton
def test_an_unknown_stage_is_refused_with_the_known_ones(
    command: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.run(parsed(None, ["--dry-run", "--stages", "chek"])) == 2
    assert capsys.readouterr().err.startswith("no stage begins with 'chek'; there are limits, check rows")


@needs_triton
def test_a_document_that_cannot_be_written_is_printed(
    command: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    options = parsed(None, ["--dry-run", "--output", str(folder / "gpu.json")])
    folder.rmdir()
    monkeypatch.setattr(command, "chosen", lambda _names: [command.Stage("check one", 1, lambda _session: [])])
    assert command.run(options) == 1
    shown = capsys.readouterr()
    assert json.loads(shown.out.splitlines()[-1])["stages"]["check one"]["outcome"] == "done"
    assert "gpu.json cannot be written ([Errno 2]" in shown.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--dry-run", "--arch", "sm91"], "'sm91' was given where one of sm80, sm90, sm100, gfx942 was expected"),
        (["--dry-run", "--arch", ""], "'' was given where one of sm80, "),
        (["--arch", "sm80"], "add --dry-run, or leave --arch out"),
        (["--budget-s", "nan"], "'nan' was given where a number of seconds above 0 was expected"),
        (["--budget-s", "-1"], "'-1' was given where a number of seconds above 0 was expected"),
        (["--budget-s", "long"], "'long' was given where a number of seconds above 0 was expected"),
        (["--output", os.devnull], f"'{os.devnull}' is a device or a pipe, where a file was expected"),
        (["--output", "no such folder/x"], "where a file that can be written was expected"),
    ],
)
def test_a_wrong_option_is_told(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parsed(None, arguments)
    assert sentence in capsys.readouterr().err


def test_an_architecture_is_named_as_the_doctor_names_it() -> None:
    assert parsed(None, ["--dry-run", "--arch", "sm_80"]).arch == "sm80"
    assert parsed(None, ["--dry-run"]).arch == "sm90"


def test_without_triton_it_says_so_and_helps_all_the_same(tmp_path: Path) -> None:
    # A Triton of its own that is too old stands for none: the folder of the sources may hold a right one.
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").touch()
    metadata = tmp_path / "triton-3.5.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: triton\nVersion: 3.5.0\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT / "engine"), str(ROOT / "kernels")])
    for asked, code, told in (([], 2, "Triton 3.5.0 is installed, and the kernels need"), (["--help"], 0, "")):
        finished = subprocess.run(
            [sys.executable, "benchmarks/gpu.py", *asked],
            cwd=ROOT, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert finished.returncode == code
        assert finished.stderr.startswith(told)
        assert "Traceback" not in finished.stderr


def test_ctrl_c_is_one_sentence_and_its_exit_code() -> None:
    script = (
        "import runpy, sys, benchmarks.on_gpu.options as options\n"
        "def interrupted(description): raise KeyboardInterrupt\n"
        "options.parsed = interrupted\n"
        "import benchmarks.gpu\n"
        "sys.modules['benchmarks.on_gpu.options'] = options\n"
        "sys.exit(benchmarks.gpu.main())"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=os.environ | {"PYTHONPATH": f"{ROOT}/engine:{ROOT}/kernels"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (finished.returncode, finished.stdout) == (130, "")
    assert finished.stderr.startswith("Interrupted; the file of --output")
    assert len(finished.stderr.splitlines()) == 1


@needs_triton
@pytest.mark.parametrize("kernel", ["W4A16", "W8A16", "W8A8"])
def test_products_move_the_weight_as_it_is_stored(kernel: str) -> None:
    products, meta = importlib.import_module("benchmarks.on_gpu.time_products"), torch.device("meta")
    weight = products._codes(256, 512, meta) if kernel == "W8A8" else products._words(256, 512, kernel == "W4A16", meta)
    work = products.product_work(kernel, 256, 512, rows=3)
    assert work.bytes_read == stored_bytes(weight) + 2 * 3 * (256 + 512)
    assert work.operations == {"int8" if kernel == "W8A8" else "16-bit": 2 * 3 * 256 * 512}


@needs_triton
def test_a_weight_inside_another_is_moved_too() -> None:
    place = importlib.import_module("benchmarks.on_gpu.place").nowhere("sm90")
    codes = Int8DynamicWeight(torch.zeros(3, 4, dtype=torch.int8), torch.ones(3))
    moved = place.put(ReorderedWeight(codes, torch.arange(4, dtype=torch.int32)))
    assert isinstance(moved, ReorderedWeight)
    assert [tensor.device.type for tensor in moved.tensors()] == ["meta"] * 3


@needs_triton
@pytest.mark.parametrize("int8", [False, True])
def test_attention_moves_what_is_seen_as_it_is_stored(int8: bool) -> None:
    attention = importlib.import_module("benchmarks.on_gpu.time_attention")
    cache = attention.random_cache(blocks=2, int8=int8, device=torch.device("meta"))
    work = attention.attention_work(2, 13, 3, int8=int8)
    rows = 2 * 3 * 32 * 128
    assert work.bytes_read == sum(part.numel() * part.element_size() for part in cache.tensors()) + 2 * 2 * rows
    assert work.operations == {"16-bit": 4 * 32 * 128 * 2 * (14 + 15 + 16)}
