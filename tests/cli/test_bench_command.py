"""`quantgate bench`: the keys that other programs rely on, and what it refuses."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.tiny_suite import write_tiny_suite

from quantgate.bench import bench_arms, bench_tables
from quantgate.cli.main import main
from quantgate_engine import LLM


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_suite(tmp_path_factory.mktemp("bench")).parent / "model"


def bench(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> object:
    monkeypatch.setattr(sys, "argv", ["quantgate", "bench", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def test_json_holds_every_figure_of_every_arm_with_its_bound(model, monkeypatch, capsys):
    options = ("--prompt-lengths", "8,24", "--batch-sizes", "1,3", "--context", "16", "--repeats", "1")
    code = bench(monkeypatch, "--model", str(model), "--schemes", "fp32,int8-w8a16", *options, "--json")
    assert code in (0, None)
    document = json.loads(capsys.readouterr().out)
    assert set(document["arms"]) == {"fp32", "int8-w8a16"}
    for arm in document["arms"].values():
        assert set(arm["prefill_tok_s"]) == set(arm["bounds"]["prefill_tok_s"]) == {"8", "24"}
        assert set(arm["decode_tok_s"]) == set(arm["bounds"]["decode_tok_s"]) == {"1", "3"}
        assert min(*arm["prefill_tok_s"].values(), *arm["decode_tok_s"].values()) > 0
        for figure in ("prefill_tok_s", "decode_tok_s"):
            for size, bound in arm["bounds"][figure].items():
                details = arm["bound_details"][figure][size]
                tokens = int(size)
                assert bound == pytest.approx(tokens / max(details["memory_seconds"], details["compute_seconds"]))
                assert arm["bound_shares"][figure][size] == pytest.approx(arm[figure][size] / bound)
    assert document["arms"]["int8-w8a16"]["weight_bytes"] < document["arms"]["fp32"]["weight_bytes"]
    limits = document["device_limits"]
    assert min(limits["read_bytes_per_s"], limits["matmul_ops_per_s"], limits["float32_ops_per_s"]) > 0
    assert set(limits["measured_by"].values()) <= {"cpp", "torch"}


def test_int8_keys_and_values_are_measured_and_bounded_as_such(model, monkeypatch, capsys):
    options = ("--prompt-lengths", "8", "--batch-sizes", "1", "--context", "16", "--repeats", "1", "--json")
    told = {}
    for kv_dtype in ("auto", "int8"):
        bench(monkeypatch, "--model", str(model), "--schemes", "fp32", "--kv-dtype", kv_dtype, *options)
        told[kv_dtype] = json.loads(capsys.readouterr().out)["arms"]["fp32"]
    assert [arm["kv_dtype"] for arm in told.values()] == ["float32", "int8"]
    assert told["int8"]["kv_bytes_per_token"] < told["auto"]["kv_bytes_per_token"] / 2


def test_the_table_shows_every_arm(model, monkeypatch, capsys):
    options = ("--prompt-lengths", "8", "--batch-sizes", "1,2", "--context", "16", "--repeats", "1")
    bench(monkeypatch, "--model", str(model), "--schemes", "fp32", *options)
    printed = capsys.readouterr().out
    assert "prefill, 8 prompt tokens" in printed
    assert "decode, 1 request " in printed
    assert "decode, 2 requests" in printed
    assert "CUDA graphs" not in printed


@pytest.mark.parametrize(("shapes", "told"), [(16, "16 shapes"), (0, "0 shapes")])
def test_on_a_gpu_it_says_whether_decode_steps_were_recorded(shapes, told, model, monkeypatch, capsys):
    options = ("--prompt-lengths", "8", "--batch-sizes", "1", "--context", "16", "--repeats", "1")
    loaded = LLM.info.fget
    monkeypatch.setattr(LLM, "info", property(lambda llm: replace(loaded(llm), recorded_steps=shapes)))
    bench(monkeypatch, "--model", str(model), "--schemes", "fp32", *options)
    [row] = [line for line in capsys.readouterr().out.splitlines() if "decode steps replayed as CUDA graphs" in line]
    assert told in row


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--prompt-lengths", "8,x"), "--prompt-lengths is '8,x'; expected positive integers"),
        (("--batch-sizes", "0"), "--batch-sizes is '0'; expected positive integers"),
        (("--schemes", ","), "--schemes names no scheme"),
        (("--schemes", "fp16,int5"), "int5"),
        (("--schemes", "fp16,fp16"), "--schemes names fp16 twice; name it once."),
        (("--batch-sizes", "2,2"), "--batch-sizes names 2 twice"),
        (("--prompt-lengths", "9" * 21), f"--prompt-lengths has {'9' * 21}, and the context of "),
        (("--context", "99999"), "--context 99999 at a batch of 16 needs "),
        (("--batch-sizes", "100000000"), "--context 512 at a batch of 100000000 needs "),
    ],
)
def test_wrong_arguments_are_one_sentence(arguments, sentence, model, monkeypatch, capsys):
    monkeypatch.setattr(bench_arms, "LLM", None)
    assert bench(monkeypatch, "--model", str(model), "--prompt-lengths", "8", *arguments) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert sentence in error
    assert "Traceback" not in error


def test_a_batch_that_needs_more_than_the_usual_pool_decodes_together():
    settings = bench_arms.BenchSettings(
        model="m", schemes=("fp16",), prompt_lengths=(8,), batch_sizes=(1, 4), context_tokens=4096, repeats=1, seed=0,
        threads=None, max_step_tokens=512,
    )  # fmt: skip
    config = settings.engine_config()
    assert config.num_kv_blocks is not None
    assert config.num_kv_blocks * config.block_size >= 4 * settings.longest_decode
    assert config.max_context_tokens == settings.longest_decode > 4096 + 32


def test_bounds_count_the_bytes_and_operations_of_the_model(model, monkeypatch, capsys):
    """The tiny model by hand: 3 layers of 128 numbers, 4 heads and 2 key heads of 32, 192 in the middle, 257 tokens."""
    options = ("--prompt-lengths", "24", "--batch-sizes", "3", "--context", "16", "--repeats", "1", "--json")
    bench(monkeypatch, "--model", str(model), "--schemes", "fp32", *options)
    details = json.loads(capsys.readouterr().out)["arms"]["fp32"]["bound_details"]
    parameters, head = 3 * (128 * (4 + 2 + 2) * 32 + 4 * 32 * 128 + 3 * 128 * 192), 257 * 128
    attention = 4 * 4 * 32 * 3
    decode, prefill = details["decode_tok_s"]["3"], details["prefill_tok_s"]["24"]
    assert decode["bytes_read"] == 4 * (parameters + head) + 3 * 16 * (3 * 2 * 2 * 32 * 4)
    assert decode["operations"] == {"float32": 3 * 2 * (parameters + head) + attention * 3 * 16}
    assert prefill["bytes_read"] == 4 * (parameters + head)
    assert prefill["operations"] == {"float32": 24 * 2 * parameters + 2 * head + attention * 24 * 25 / 2}


def test_a_prompt_in_chunks_reads_the_weights_once_a_chunk(model, monkeypatch, capsys):
    options = ("--batch-sizes", "1", "--context", "16", "--repeats", "1", "--json", "--prompt-lengths", "24")
    read = []
    for step_tokens in (24, 12):
        bench(monkeypatch, "--model", str(model), "--schemes", "fp32", "--max-step-tokens", str(step_tokens), *options)
        [arm] = json.loads(capsys.readouterr().out)["arms"].values()
        details = arm["bound_details"]["prefill_tok_s"]["24"]
        read.append((details["bytes_read"], arm["linear_weight_bytes"]))
    (whole, linear), (chunked, _) = read
    assert chunked - whole == linear + 12 * (3 * 2 * 2 * 32 * 4)


def test_the_table_has_bound_share_limits_and_kernel_paths(model, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "160")
    options = ("--prompt-lengths", "8", "--batch-sizes", "2", "--context", "16", "--repeats", "1")
    bench(monkeypatch, "--model", str(model), "--schemes", "fp32", *options)
    printed = " ".join(capsys.readouterr().out.split())
    assert re.search(r"prefill, 8 prompt tokens *│ *[\d,]+ of [\d,]+ \(\d+%\)", printed)
    assert re.search(r"decode, 2 requests *│ *[\d,]+ of [\d,]+ \(\d+%\)", printed)
    assert re.search(r"memory read [\d,.]+ GB/s \(by (cpp|torch)\)", printed)
    assert re.search(r"float32 products [\d,.]+ GOP/s \(by (cpp|torch)\)", printed)
    assert re.search(r"rms_norm *│ *(cpp|torch)", printed)
    assert "linear.float32" in printed


def test_a_figure_without_a_bound_says_so():
    assert bench_tables.bound_cell(112.4, 297.0) == "112 of 297 (38%)"
    assert bench_tables.bound_cell(1234.0, None) == "1,234 (no bound)"
