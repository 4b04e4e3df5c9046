"""The bundled engine under a replay, in real time on the real model: order and bookkeeping, never speed."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from tests.replay.plans import plan_of

from quantgate.replay.arms import ReplayArm, with_aa_arm
from quantgate.replay.fidelity import certify
from quantgate.replay.replay_log import ReplayLog
from quantgate.replay.run_replay import ReplayHooks, ReplayOptions, run_replay
from quantgate.targets.bundled_engine import BundledEngineTarget
from quantgate.workload.plan import PlannedRequest
from quantgate_engine import LLM
from quantgate_engine.clock import MonotonicClock

pytestmark = pytest.mark.model

MS = 1_000_000
NO_LIMIT_MS = 1e9


@pytest.fixture(scope="module")
def llm() -> LLM:
    return LLM("smollm2-135m-instruct", scheme="int8-w8a16", max_active_requests=4, threads=1, num_kv_blocks=256)


def test_a_replay_on_the_engine_is_ordered_complete_and_leaves_nothing_behind(llm: LLM) -> None:
    clock = MonotonicClock()
    token_ids = tuple(llm.tokenizer.encode("The three primary colours are red, blue and"))
    plan = plan_of(
        PlannedRequest("whole", 0, token_ids, 4),
        PlannedRequest("leaves", 5 * MS, token_ids, 40, disconnect_after_tokens=2),
        PlannedRequest("too long", 10 * MS, token_ids * 2000, 4),
        PlannedRequest("turn 1", 15 * MS, token_ids, 3, session_id="s"),
        PlannedRequest("turn 2", 15 * MS, token_ids, 3, session_id="s", turn=2, think_time_ns=30 * MS),
    )
    target = BundledEngineTarget(llm, arm_id="int8", role="baseline")
    arms = with_aa_arm([ReplayArm("int8", "baseline", target)])
    log = ReplayLog()
    replaying = run_replay(
        plan,
        arms,
        log,
        clock=clock,
        origin_ns=clock.now_ns(),
        options=ReplayOptions(warmup_requests=1),
        hooks=ReplayHooks(thread_cpu_ns=time.thread_time_ns),
    )
    asyncio.run(asyncio.wait_for(replaying, 120))

    rows = log.requests().to_pylist()
    assert [row["arm_id"] for row in rows] == ["int8"] * 5 + ["int8-aa"] * 5
    ends = {(row["arm_id"], row["request_id"]): (row["status"], row["abort_cause"]) for row in rows}
    for arm_id in ("int8", "int8-aa"):
        assert ends[arm_id, "leaves"] == ("aborted", "disconnect")
        assert ends[arm_id, "too long"] == ("rejected", None)
        assert {ends[arm_id, name] for name in ("whole", "turn 1", "turn 2")} == {("finished", None)}
    for row in rows:
        assert 0 <= row["scheduled_ns"] <= row["sent_ns"] <= row["ended_ns"]
        assert row["token_times_ns"] == sorted(row["token_times_ns"])
        assert len(row["token_times_ns"]) == row["output_tokens"] == len(row["output_token_ids"])
        if row["status"] == "finished":
            stamps = ("sent_ns", "arrived_ns", "admitted_ns", "engine_first_token_ns", "first_token_ns", "ended_ns")
            assert [row[name] for name in stamps] == sorted(row[name] for name in stamps)
            assert row["engine_finished_ns"] <= row["last_token_ns"]
            assert row["kv_peak_blocks"] >= 1
    # The same weights on the same requests: the twin says the same.
    assert [row["output_text"] for row in rows[:5] if row["status"] == "finished"] == [
        row["output_text"] for row in rows[5:] if row["status"] == "finished"
    ]
    assert rows[0]["prompt_text"] == "The three primary colours are red, blue and"
    assert log.steps().num_rows > 0
    share = certify("int8", log.of_arm("int8"), requests_intended=5, lag_limit_ms=NO_LIMIT_MS).driver_cpu_share
    assert share is not None
    assert 0.0 < share < 1.0
    assert llm.core.held_blocks == 0
    assert "quantgate-engine-steps" not in [thread.name for thread in threading.enumerate()]


def test_the_description_is_what_was_loaded(llm: LLM) -> None:
    description = BundledEngineTarget(llm, arm_id="int8", role="candidate", notes=("by hand",)).description
    assert (description.arm_id, description.role, description.notes) == ("int8", "candidate", ("by hand",))
    assert description.scheme == "int8-w8a16"
    assert 0 < description.linear_weight_bytes < description.weight_bytes
