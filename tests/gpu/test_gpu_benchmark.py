"""benchmarks/gpu.py without a GPU: some of it laid out and compiled; stages that fail, and a budget that ends."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from tests.gpu.triton_processes import INSTALLED, MISSING, TRITONS, run_python

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
    assert command.run(None, ["--dry-run", "--output", str(output)]) == 1
    assert seen == [{"check one": "failed"}]
    assert outcomes(output) == {"check one": "failed", "check two": "done"}
    assert "check one: failed RuntimeError: no [bold] kernel" in capsys.readouterr().out


@needs_triton
def test_a_wrong_result_is_an_exit_code(command: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for right, code in ((True, 0), (False, 1), (None, 0)):
        checked = {"kernel": "k", "case": "c", "largest_error": 1.0, "error": 1.0, "limit": 0.5, "right": right}
        stage = command.Stage("check one", 1, lambda _session, row=checked: [row])
        monkeypatch.setattr(command, "chosen", lambda _names, one=stage: [one])
        assert command.run(None, ["--dry-run", "--output", str(tmp_path / f"{right}.json")]) == code


@needs_triton
def test_stages_that_would_pass_the_budget_are_skipped(command: ModuleType) -> None:
    session = command.Session(command.nowhere("sm90"))
    stage = command.Stage("check one", 40, lambda _session: [])
    assert command._next(stage, session, 41.0)["outcome"] == "done"
    skipped = command._next(stage, session, 39.4)
    assert skipped["outcome"] == "skipped"
    assert skipped["error"] == "it takes about 40 s, and 39 are left of the budget"


@needs_triton
def test_an_unknown_stage_is_refused_with_the_known_ones(command: ModuleType) -> None:
    with pytest.raises(SystemExit, match="no stage begins with 'chek'; there are limits, check rows"):
        command.run(None, ["--dry-run", "--stages", "chek"])


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
