"""A trace whose clients read slowly, leave, and share a prompt: a whole replay does so and says so."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.cli.tiny_suite import write_tiny_suite

from quantgate.cli.main import run_command
from quantgate.store.run_folder import load_run


def test_a_replay_serves_clients_as_the_trace_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tiny_suite(tmp_path)
    prompt = " ".join(f"w{number}" for number in range(5, 45))
    clients = [{}, {"read_tokens_per_s": 50}, {"disconnect_after_s": 0.001, "max_tokens": 60}]
    rows = [
        {"id": f"r{place}", "offset": 0.3 * place, "prompt": prompt, "max_tokens": 6} | client
        for place, client in enumerate(clients)
    ]
    (tmp_path / "traffic.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "engine.yaml").write_text(
        "max_active_requests: 4\nmax_step_tokens: 32\nmax_context_tokens: 128\ncache: {prefix_sharing: true}\n"
    )
    monkeypatch.setenv("COLUMNS", "200")
    command = [
        "quantgate", "replay", str(tmp_path / "traffic.jsonl"), "--model", str(tmp_path / "model"), "--scheme", "fp32",
        "--engine", str(tmp_path / "engine.yaml"), "--results", str(tmp_path / "results"),
    ]  # fmt: skip
    monkeypatch.setattr(sys, "argv", command)
    run_command()
    printed = " ".join(capsys.readouterr().out.split())
    assert "1 of 3 requests was read slowly by plan" in printed
    [folder] = (tmp_path / "results").iterdir()
    run = load_run(folder)
    plain, slow, left = sorted(run.requests.to_pylist(), key=lambda row: row["request_id"])
    assert plain["status"] == slow["status"] == "finished"
    gaps = [later - earlier for earlier, later in zip(slow["token_times_ns"], slow["token_times_ns"][1:], strict=False)]
    assert len(gaps) == 5
    assert min(gaps) >= 20_000_000
    assert (left["status"], left["abort_cause"]) == ("aborted", "impatience")
    [certificate] = run.manifest.fidelity
    sharing = certificate.prefix_sharing
    assert sharing is not None
    # The one that left never told what it found.
    assert (sharing.requests, sharing.enabled) == (2, True)
    assert sharing.cached_tokens == sharing.promised_tokens == slow["cached_prompt_tokens"] > 0
    assert "Prefix sharing of fp32: prompts share" in printed
    assert "What the prompts share" in (folder / "report.html").read_text()
