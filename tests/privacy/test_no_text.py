"""`--no-text`: no twelve characters of any prompt or answer are found in what a run leaves behind."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from tests.cli.tiny_suite import write_tiny_suite
from tests.privacy.stored_text import contents, found_in
from tests.replay.plans import MS, plan_of
from tests.report.stored_run import build_manifest

from quantgate.cli.main import main
from quantgate.replay.arms import ReplayArm
from quantgate.replay.replay_log import ReplayLog
from quantgate.replay.run_replay import run_replay
from quantgate.replay.virtual_time import run_in_virtual_time
from quantgate.store.redaction import FAILURE_NOT_KEPT, INTERRUPTED, TEXT_COLUMNS
from quantgate.store.run_folder import RunFolder, load_run
from quantgate.store.schemas import TABLES
from quantgate.store.tier_status import TierStatus
from quantgate.targets.scripted import ScriptedAnswer, ScriptedTarget
from quantgate.traces.record import Message
from quantgate.workload.plan import PlannedRequest
from quantgate_engine.clock import VirtualClock

SECRET = "the crocus blooms at midnight"

# Numbers and names of Prometheus metrics: a server's, not a user's.
HOLDS_NO_TEXT = {("server_metrics", "labels")}


@pytest.mark.parametrize("table_name", TABLES)
def test_every_column_of_text_is_known_as_such(table_name: str) -> None:
    texts = {
        field.name
        for field in TABLES[table_name]
        if (field.metadata or {}).get(b"unit") in {b"text", b"JSON", b"token ids"}
        and (table_name, field.name) not in HOLDS_NO_TEXT
    }
    assert texts <= set(TEXT_COLUMNS[table_name]) <= set(TABLES[table_name].names)


def new_folder(tmp_path: Path, *, keep_text: bool) -> RunFolder:
    return RunFolder.create(
        tmp_path / "results", now=datetime(2027, 1, 2, tzinfo=UTC), random=Random(0), keep_text=keep_text
    )


def replayed_requests() -> pa.Table:
    """Requests whose prompts, answers and errors all say the secret."""

    def script(request: PlannedRequest) -> ScriptedAnswer:
        error = ValueError(f"cannot answer {SECRET!r}") if request.request_id == "broken" else None
        return ScriptedAnswer((MS,), error=error)

    class Telling(ScriptedTarget):
        def decode_text(self, token_ids: list[int]) -> str:
            return f"{SECRET} {token_ids}"

    async def main(clock: VirtualClock) -> pa.Table:
        messages = (Message("user", SECRET),)
        plan = plan_of(
            *(PlannedRequest(name, 0, (), 1, messages=messages, prompt_text=None) for name in ("whole", "broken"))
        )
        log = ReplayLog()
        arm = ReplayArm("scripted", "baseline", Telling(script, clock, slots=2))
        await run_replay(plan, [arm], log, clock=clock, origin_ns=0)
        return log.requests()

    return run_in_virtual_time(main)


def test_prompts_answers_and_errors_that_quote_them_are_not_written(tmp_path: Path) -> None:
    requests = replayed_requests()
    kept, bare = new_folder(tmp_path / "kept", keep_text=True), new_folder(tmp_path / "bare", keep_text=False)
    for folder in (kept, bare):
        folder.write_table("requests", requests)
    assert found_in(kept.path, [SECRET])
    assert found_in(bare.path, [SECRET]) == []


def test_a_failure_that_quotes_a_prompt_is_not_written(tmp_path: Path) -> None:
    tier = TierStatus(
        tier="answers", arm_id="x", status="partial", reason="1 of 2 items failed", first_failure=f"refused {SECRET!r}"
    )
    failed = build_manifest(requests=1).model_copy(
        update={"state": "failed", "failure": f"RunError: {SECRET}", "quality_tiers": [tier]}
    )
    folder = new_folder(tmp_path, keep_text=False)
    folder.write_manifest(failed)
    assert found_in(folder.path, [SECRET]) == []
    stored = load_run(folder.path).manifest
    assert stored.failure == FAILURE_NOT_KEPT
    assert [status.in_words for status in stored.quality_tiers] == ["1 of 2 items failed"]
    folder.write_manifest(failed.model_copy(update={"state": "interrupted", "failure": INTERRUPTED}))
    assert load_run(folder.path).manifest.failure == INTERRUPTED


def run_tiny_suite(suite: Path, results: Path, monkeypatch: pytest.MonkeyPatch, *flags: str) -> Path:
    monkeypatch.setattr(sys, "argv", ["quantgate", "run", str(suite), "--results", str(results), *flags])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    [folder] = results.iterdir()
    return folder


def test_a_whole_run_without_text_leaves_none_in_any_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = write_tiny_suite(tmp_path)
    tiers = "distribution: {sequences: 4}"
    suite.write_text(suite.read_text().replace(tiers, f"{tiers}\n  tasks: {{multiple_choice: {{limit: 2}}}}"))
    trace = tmp_path / "traffic.jsonl"
    rows = [json.loads(line) for line in trace.read_text().splitlines()]
    for row in rows:
        row["messages"][0]["content"] += f" {SECRET}"
    trace.write_text("".join(json.dumps(row) + "\n" for row in rows))

    with_text = run_tiny_suite(suite, tmp_path / "kept", monkeypatch)
    without = run_tiny_suite(suite, tmp_path / "bare", monkeypatch, "--no-text")

    run = load_run(with_text)
    texts = [SECRET, *(row["messages"][0]["content"] for row in rows)]
    texts += [text for table, name in ((run.requests, "prompt_text"), (run.requests, "output_text"),
                                       (run.quality, "output_text"), (run.quality, "expected_text"))
              for text in table.column(name).to_pylist() if text]  # fmt: skip
    assert found_in(with_text, texts)
    assert found_in(without, texts) == []
    assert {name for name, _ in contents(without)} == {name for name, _ in contents(with_text)}


def test_a_run_without_text_measures_what_a_run_with_text_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = write_tiny_suite(tmp_path)
    measured = []
    for name, flags in (("kept", ()), ("bare", ("--no-text",))):
        quality = load_run(run_tiny_suite(suite, tmp_path / name, monkeypatch, *flags)).quality.to_pylist()
        measured.append({(row["arm_id"], row["metric"], row["item_id"], row["value"]) for row in quality})
    assert measured[0]
    assert measured[0] == measured[1]
