"""What a suite says of the bundled engine, in whole runs: KV dtype per arm, shared prefixes, pools, classes, a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.tiny_suite import POLICY, write_tiny_suite

from quantgate.cli.main import run_command
from quantgate.engine_settings.engine import EngineSettings
from quantgate.store.run_folder import LoadedRun, load_run
from quantgate.suite import Suite, load_suite
from quantgate_engine import EngineConfig
from quantgate_engine.kv.settings import CacheSettings
from quantgate_engine.scheduler.batching.settings import BatchingSettings

PLAIN = "engine: {max_active_requests: 4, max_step_tokens: 32, max_context_tokens: 128}\n"
CANDIDATE = "  - {scheme: int8-w8a16, id: candidate}\n"
ENGINE = """\
engine:
  max_active_requests: 4
  max_step_tokens: 32
  max_context_tokens: 128
  block_size: 4
  cache: {prefix_sharing: true}
  pools:
    - {name: few, rule: {slo_classes: [interactive]}}
    - {name: many}
"""
Run = Callable[..., tuple[int, LoadedRun | None]]


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Two arms that differ in their KV cache alone."""
    path = write_tiny_suite(tmp_path, requests=8)
    text = path.read_text().replace(CANDIDATE, "  - {scheme: fp32, id: kv8, kv_dtype: int8}\n")
    path.write_text(text.replace("  distribution: {sequences: 4}", "  distribution: {sequences: 2}"))
    return path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    def invoke(*arguments: str) -> tuple[int, LoadedRun | None]:
        results = tmp_path / "results"
        monkeypatch.setattr(sys, "argv", ["quantgate", *arguments, "--results", str(results)])
        code = run_command()
        folders = list(results.iterdir()) if results.exists() else []
        return code, load_run(folders[0]) if folders else None

    return invoke


def write_traffic(suite: Path, rows: list[dict[str, object]]) -> None:
    lines = [
        {"id": f"r{index}", "offset": 0.02 * index, "max_tokens": 4, "class": "interactive"} | row
        for index, row in enumerate(rows)
    ]
    (suite.parent / "traffic.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def same_prompt(count: int, **fields: object) -> list[dict[str, object]]:
    words = " ".join(f"w{number}" for number in range(5, 25))
    return [{"messages": [{"role": "user", "content": words}]} | fields for _ in range(count)]


def test_arms_may_differ_in_the_kv_cache_alone_where_the_policy_lets_them(suite: Path, run: Run, capsys) -> None:
    (suite.parent / "policy.yaml").write_text(POLICY + "must_match: [kv_dtype]\n")
    code, _ = run("run", str(suite))
    assert code == 5
    assert "differ in kv_dtype (float32 against int8)" in " ".join(capsys.readouterr().err.split())
    code, done = run("run", str(suite), "--may-differ", "kv_dtype")
    assert (code, done is not None) == (0, True)
    arms = {arm.arm_id: arm for arm in done.manifest.arms}
    assert {arm_id: arm.kv_dtype for arm_id, arm in arms.items()} == {
        "fp32": "float32", "fp32-aa": "float32", "kv8": "int8",
    }  # fmt: skip
    assert arms["kv8"].kv_bytes_per_token < arms["fp32"].kv_bytes_per_token / 2
    kl = [row["value"] for row in done.quality.to_pylist() if row["arm_id"] == "kv8" and row["metric"] == "kl"]
    assert max(kl) > 1e-9


def test_prefixes_are_found_within_a_turn_and_not_in_the_next(suite: Path, run: Run) -> None:
    suite.write_text(suite.read_text().replace(PLAIN, ENGINE).replace("blocks: 2", "blocks: 1"))
    write_traffic(suite, same_prompt(16))
    code, done = run("run", str(suite))
    assert (code, done is not None) == (0, True)
    for arm_id in ("fp32", "fp32-aa", "kv8"):
        rows = sorted(
            (row for row in done.requests.to_pylist() if row["arm_id"] == arm_id), key=lambda row: row["scheduled_ns"]
        )
        assert rows[0]["cached_prompt_tokens"] == 0, arm_id
        assert all(row["cached_prompt_tokens"] >= 16 for row in rows[1:]), arm_id
        found = sum(row["cached_prompt_tokens"] for row in rows)
        [sharing] = [entry.prefix_sharing for entry in done.manifest.fidelity if entry.arm_id == arm_id]
        assert sharing is not None
        assert (sharing.block_tokens, sharing.enabled, sharing.cached_tokens) == (4, True, found)
        assert sharing.promised_tokens >= found


def test_pools_and_classes_of_a_suite_are_those_of_its_requests(suite: Path, run: Run) -> None:
    suite.write_text(suite.read_text().replace(PLAIN, ENGINE))
    classes = ("interactive", "batch", "premium", "batch") * 4
    write_traffic(suite, [same_prompt(1, **{"class": slo_class})[0] for slo_class in classes])
    code, done = run("run", str(suite))
    assert (code, done is not None) == (0, True)
    prompt_tokens = {"few": 0, "many": 0}
    for step in done.steps.to_pylist():
        if step["arm_id"] == "fp32":
            prompt_tokens[step["pool"]] += step["prefill_tokens"]
    recorded = Suite.model_validate(done.manifest.suite)
    assert recorded.engine.to_pools() == load_suite(suite).suite.engine.to_pools()
    assert all(entry.engine.cache.prefix_sharing for entry in recorded.engine.pools)
    assert min(prompt_tokens.values()) > 0
    for arm in done.manifest.arms:
        assert arm.notes == ["scheduled as interactive, because the engine has no such SLO class: premium"]


def test_a_replay_takes_its_engine_from_a_file_and_keeps_what_was_set(suite: Path, run: Run, tmp_path: Path) -> None:
    write_traffic(suite, same_prompt(3))
    file = tmp_path / "engine.yaml"
    file.write_text("block_size: 4\nmax_context_tokens: 128\nbatching: {mode: split}\n")
    flags = ("--model", str(suite.parent / "model"), "--scheme", "fp32", "--engine", str(file), "--prefix-sharing")
    code, done = run("replay", str(suite.parent / "traffic.jsonl"), *flags)
    assert (code, done is not None) == (0, True)
    again = EngineSettings.model_validate(done.manifest.engine)
    assert again.to_engine_config() == EngineConfig(
        block_size=4,
        max_context_tokens=128,
        batching=BatchingSettings(mode="split"),
        cache=CacheSettings(prefix_sharing=True),
    )
    assert not [step for step in done.steps.to_pylist() if step["prefill_tokens"] and step["decode_tokens"]]


def test_sessions_that_held_the_cache_between_their_turns_are_kept_with_the_arm(suite: Path, run: Run) -> None:
    engine = ENGINE.replace("{prefix_sharing: true}", "{prefix_sharing: true, session_seconds: 60}")
    suite.write_text(suite.read_text().replace(PLAIN, engine).replace("blocks: 2", "blocks: 1"))
    rows = same_prompt(16)
    rows[0] |= {"session": "s", "turn": 1}
    rows[1] |= {"session": "s", "turn": 2, "think_time": 0.05}
    write_traffic(suite, rows)
    code, done = run("run", str(suite))
    assert (code, done is not None) == (0, True)
    for arm in done.manifest.arms:
        turns = {stay.holder.partition("@")[2] for stay in arm.kv_sessions}
        assert {stay.holder.partition("@")[0] for stay in arm.kv_sessions} == {"s"}, arm.arm_id
        # The A/A arm's engine is the baseline's, and each of its two turns is a session of its own there.
        assert turns == ({"1"} if arm.role == "candidate" else {"1", "2"}), arm.arm_id
        assert all(stay.blocks > 0 for stay in arm.kv_sessions)
