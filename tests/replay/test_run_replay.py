"""A whole replay: cells, arms, logs and certificates against values worked out by hand."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.replay.plans import MS, answers, plan_of, planned, steady_plan

from quantgate.metrics.goodput_rps import goodput_rps
from quantgate.metrics.registry import pooled_metric, request_metric
from quantgate.metrics.slo_attainment import slo_attainment
from quantgate.replay.arms import ReplayArm, with_aa_arm
from quantgate.replay.fidelity import certify
from quantgate.replay.progress import ReplayProgress
from quantgate.replay.replay_log import CellResult, ReplayLog
from quantgate.replay.run_replay import ReplayHooks, ReplayOptions, run_replay
from quantgate.replay.virtual_time import run_in_virtual_time
from quantgate.targets.scripted import ScriptedAnswer, ScriptedTarget
from quantgate.workload.plan import PlannedRequest, ReplayPlan
from quantgate_engine.clock import VirtualClock

SECOND = 1000 * MS


def replay(
    plan: ReplayPlan,
    scripts: dict[str, Callable[[PlannedRequest], ScriptedAnswer]],
    *,
    slots: int = 8,
    options: ReplayOptions | None = None,
    hooks: ReplayHooks | None = None,
    aa: bool = False,
) -> ReplayLog:
    """Runs the arms (the first is the baseline) in virtual time, starting 3 s after the clock's zero."""

    async def main(clock: VirtualClock) -> ReplayLog:
        await asyncio.sleep(3)
        log = ReplayLog()
        await run_replay(
            plan,
            arms_on(clock, scripts, slots, aa=aa),
            log,
            clock=clock,
            origin_ns=3 * SECOND,
            options=options or ReplayOptions(warmup_requests=0),
            hooks=hooks,
        )
        return log

    return run_in_virtual_time(main)


def arms_on(
    clock: VirtualClock, scripts: dict[str, Callable[[PlannedRequest], ScriptedAnswer]], slots: int, *, aa: bool = False
) -> tuple[ReplayArm, ...]:
    arms = []
    for index, (arm_id, script) in enumerate(scripts.items()):
        target = ScriptedTarget(script, clock, slots=slots, arm_id=arm_id)
        arms.append(ReplayArm(arm_id, "candidate" if index else "baseline", target))
    return with_aa_arm(arms) if aa else tuple(arms)


def test_known_delays_give_exact_metrics() -> None:
    log = replay(steady_plan(4, every_ms=250), {"fp16": answers(40, 10, 20), "int4": answers(30, 5, 5)})
    table = log.requests()
    baseline = table.filter(np.asarray(table.column("arm_id")) == "fp16")
    expected = {
        "ttft_ms": 40.0, "ttft_from_sent_ms": 40.0, "tpot_ms": 15.0, "e2e_ms": 70.0, "longest_gap_ms": 20.0,
        "queue_time_ms": 0.0, "prefill_latency_ms": 40.0, "decode_latency_ms": 30.0, "output_tokens": 3.0,
    }  # fmt: skip
    for name, value in expected.items():
        np.testing.assert_array_equal(request_metric(name)(baseline), [value] * 4, err_msg=name)
    assert pooled_metric("itl_ms")(baseline).values.tolist() == [10.0, 20.0] * 4
    assert slo_attainment(table, {"interactive": {"ttft_ms": 35.0}}).tolist() == [0.0] * 4 + [1.0] * 4
    # The baseline serves from its first schedule (0 ms) to its last end (750 + 70 ms).
    assert goodput_rps(baseline, {"interactive": {"ttft_ms": 40.0}}) == pytest.approx(4 / 0.82, rel=1e-12)


def test_the_99th_percentile_from_schedule_equals_the_analytic_value() -> None:
    table = replay(steady_plan(200, every_ms=100), {"fp16": answers(500)}, slots=1).requests()
    ttft = request_metric("ttft_ms")(table)
    np.testing.assert_array_equal(ttft, 500.0 + 400.0 * np.arange(200))
    assert np.quantile(ttft, 0.99) == pytest.approx(500 + 400 * 0.99 * 199, rel=1e-12)


def test_rows_say_what_was_asked_and_what_came() -> None:
    request = planned("a", output_tokens=2, slo_class="batch", session_id="s", tags=("rag", "de"))
    row = replay(plan_of(request), {"fp16": answers(40, 10)}).requests().to_pylist()[0]
    anchor = row["scheduled_ns"]
    assert row == {
        "arm_id": "fp16", "pass_index": 0, "block_index": 0, "request_id": "a", "slo_class": "batch",
        "session_id": "s", "turn": 1, "tags": ["rag", "de"], "prompt_tokens": 4, "requested_output_tokens": 2,
        "output_tokens": 2, "status": "finished", "finish_reason": "length", "abort_cause": None, "error": None,
        "scheduled_ns": anchor, "sent_ns": anchor, "first_token_ns": anchor + 40 * MS,
        "last_token_ns": anchor + 50 * MS, "ended_ns": anchor + 50 * MS,
        "token_times_ns": [anchor + 40 * MS, anchor + 50 * MS], "arrived_ns": anchor, "admitted_ns": anchor,
        "engine_first_token_ns": anchor + 40 * MS, "engine_finished_ns": anchor + 50 * MS, "preemptions": 0,
        "recomputed_tokens": 0, "cached_prompt_tokens": 0, "kv_peak_blocks": 0, "kv_block_seconds": 0.0,
        "output_token_ids": [1, 2], "prompt_text": "1 2 3 4", "output_text": "1 2", "reasoning_text": None,
        "counted_by": "engine", "chunks": 2, "first_answer_ns": anchor + 40 * MS, "attempts": 1, "http_status": None,
        "error_kind": None, "client_overhead_ns": None, "degraded": None, "cached_told": True,
        "read_tokens_per_s": None,
    }  # fmt: skip
    assert 0 <= anchor < 1 * SECOND


def test_cells_follow_each_other_drained_and_in_counterbalanced_order() -> None:
    log = replay(steady_plan(8, every_ms=100, blocks=2), {"fp16": answers(300), "int4": answers(900)}, aa=True)
    order = [result.cell.arm_id for result in log.cells]
    assert order == ["fp16", "int4", "fp16-aa", "fp16-aa", "int4", "fp16"]
    for earlier, later in zip(log.cells, log.cells[1:], strict=False):
        assert max(earlier.requests.column("ended_ns").to_pylist()) <= later.anchor_ns
    for result in log.cells:
        offsets = [time - result.anchor_ns for time in result.requests.column("scheduled_ns").to_pylist()]
        assert offsets == [0, 100 * MS, 200 * MS, 300 * MS]


def test_the_aa_arm_is_the_baselines_own_target() -> None:
    async def main(clock: VirtualClock) -> tuple[ReplayArm, ...]:
        return arms_on(clock, {"fp16": answers(1), "int4": answers(1)}, slots=1, aa=True)

    baseline, _, twin = run_in_virtual_time(main)
    assert twin.target is baseline.target
    assert twin.description == replace(baseline.description, arm_id="fp16-aa", role="aa")


def test_every_arm_and_pass_sees_the_same_requests() -> None:
    options = ReplayOptions(passes=2, warmup_requests=0)
    plan = steady_plan(6, every_ms=10, blocks=3)
    table = replay(plan, {"a": answers(5), "b": answers(7)}, options=options).requests()
    seen = set(zip(*(table.column(name).to_pylist() for name in ("arm_id", "pass_index", "request_id")), strict=True))
    assert seen == {(arm, index, request.request_id) for arm in "ab" for index in (0, 1) for request in plan.requests}
    assert table.num_rows == len(seen)


def test_warm_up_reaches_each_target_once_and_no_log() -> None:
    served: dict[str, list[str]] = {}

    def recording(arm_id: str) -> Callable[[PlannedRequest], ScriptedAnswer]:
        def script(request: PlannedRequest) -> ScriptedAnswer:
            served.setdefault(arm_id, []).append(request.request_id)
            return ScriptedAnswer((MS,))

        return script

    plan = plan_of(planned("r0"), planned("r1", session_id="s"), planned("r2", session_id="s", turn=2))
    options = ReplayOptions(warmup_requests=2)
    log = replay(plan, {"a": recording("a"), "b": recording("b")}, options=options, aa=True)
    assert served["a"] == ["warm-up-0", "warm-up-1", "r0", "r1", "r2", "r0", "r1", "r2"]
    assert served["b"] == ["warm-up-0", "warm-up-1", "r0", "r1", "r2"]
    assert set(log.requests().column("request_id").to_pylist()) == {"r0", "r1", "r2"}


def test_progress_counts_up_to_the_whole_and_estimates_the_rest() -> None:
    steps: list[ReplayProgress] = []
    hooks = ReplayHooks(on_progress=steps.append)
    replay(steady_plan(4, every_ms=100, blocks=2), {"a": answers(50), "b": answers(50)}, hooks=hooks)
    assert [step.requests_done for step in steps] == [1, 2, 2, 3, 4, 4, 5, 6, 6, 7, 8, 8]
    assert (steps[-1].cells_done, steps[-1].cells_total, steps[-1].requests_total) == (4, 4, 8)
    assert steps[-1].eta_seconds == 0.0
    halfway = steps[5]
    assert halfway.eta_seconds == pytest.approx(halfway.elapsed_seconds)
    assert ReplayProgress("a", 0, 1, 0, 8, 1.0).eta_seconds is None


def test_cancelling_keeps_what_had_ended_and_stops_the_targets() -> None:
    handed_over: list[CellResult] = []

    async def main(clock: VirtualClock) -> tuple[ReplayLog, set[str]]:
        log = ReplayLog()
        arms = arms_on(clock, {"a": answers(50), "b": answers(50)}, slots=8)
        replaying: Coroutine[Any, Any, None] = run_replay(
            steady_plan(8, every_ms=100, blocks=2),
            arms,
            log,
            clock=clock,
            origin_ns=0,
            options=ReplayOptions(warmup_requests=0),
            hooks=ReplayHooks(on_cell=handed_over.append),
        )
        task = asyncio.create_task(replaying)
        await asyncio.sleep(0.6)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert isinstance(arms[1].target, ScriptedTarget)
        return log, arms[1].target.open_requests

    log, still_open = run_in_virtual_time(main)
    assert still_open == set()
    assert log.cells == handed_over
    assert [(result.cell.arm_id, result.requests_intended, result.requests.num_rows) for result in log.cells] == [
        ("a", 4, 4),
        ("b", 4, 2),
    ]
    assert certify("b", log.of_arm("b"), requests_intended=8).reasons == ["2 of 8 intended requests were sent."]


@pytest.fixture
def heeded_ctrl_c() -> Iterator[None]:
    """Tests that run in the background inherit that Ctrl-C is to be ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeded_ctrl_c")
def test_ctrl_c_in_the_middle_of_a_cell_keeps_the_rows_and_ends_as_an_interrupt() -> None:
    log = ReplayLog()

    async def main(clock: VirtualClock) -> None:
        arms = arms_on(clock, {"a": answers(50)}, slots=8)
        asyncio.get_running_loop().call_later(0.2, signal.raise_signal, signal.SIGINT)
        options = ReplayOptions(warmup_requests=0)
        await run_replay(steady_plan(8, every_ms=100), arms, log, clock=clock, origin_ns=0, options=options)

    with pytest.raises(KeyboardInterrupt):
        run_in_virtual_time(main)
    assert log.requests().column("request_id").to_pylist() == ["r000", "r001"]


def test_a_delivered_load_gets_a_valid_certificate() -> None:
    log = replay(steady_plan(12, every_ms=250, blocks=2), {"a": answers(5), "b": answers(5)})
    certificate = certify("b", log.of_arm("b"), requests_intended=12)
    assert certificate.valid
    assert certificate.reasons == []
    assert (certificate.lag_ms_p50, certificate.lag_ms_max) == (0.0, 0.0)
    # 12 requests over 3 s, one every 250 ms: counted on the plan's time line although the cells lie apart.
    assert [(w.window_seconds, w.intended, w.delivered, w.max_difference) for w in certificate.windows] == [
        (1, [4, 4, 4], [4, 4, 4], 0),
        (10, [12], [12], 0),
        (60, [12], [12], 0),
    ]
    assert certificate.driver_cpu_share is None


def test_a_constant_delay_is_seen_because_lag_is_absolute() -> None:
    async def main(clock: VirtualClock) -> ReplayLog:
        log = ReplayLog()
        # The first callback of the cell blocks the driver's thread for 1.2 s, so all requests leave late alike.
        asyncio.get_running_loop().call_later(0.01, clock.advance_ns, 1200 * MS)
        target = ScriptedTarget(answers(5), clock, slots=8)
        options = ReplayOptions(warmup_requests=0)
        plan = steady_plan(4, every_ms=1)
        await run_replay(plan, [ReplayArm("a", "baseline", target)], log, clock=clock, origin_ns=0, options=options)
        return log

    certificate = certify("a", run_in_virtual_time(main).of_arm("a"), requests_intended=4, lag_limit_ms=100.0)
    assert not certificate.valid
    assert certificate.lag_ms_max == 1190.0
    assert certificate.reasons == [
        "1 % of the requests were sent more than 1190.0 ms after their schedule; the limit is 100 ms."
    ]
    assert certificate.windows[0].intended == [4, 0]
    assert certificate.windows[0].delivered == [0, 4]
    assert certificate.windows[0].max_difference == 4


def test_the_drivers_cpu_share_is_its_threads_time_over_the_cells_duration() -> None:
    readings = iter(range(0, 10_000 * MS, 10 * MS))
    hooks = ReplayHooks(thread_cpu_ns=lambda: next(readings))
    log = replay(steady_plan(2, every_ms=60, blocks=1), {"a": answers(40)}, hooks=hooks)
    assert certify("a", log.cells, requests_intended=2).driver_cpu_share == pytest.approx(10 / 100)


def test_nothing_sent_is_an_invalid_certificate_and_no_crash() -> None:
    certificate = certify("a", [], requests_intended=3)
    assert not certificate.valid
    assert certificate.requests_delivered == 0
    assert [window.intended for window in certificate.windows] == [[], [], []]
