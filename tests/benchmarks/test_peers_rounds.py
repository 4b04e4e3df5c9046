"""Rounds of a comparison on scripted engines, in worker processes of their own."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from benchmarks.peers.arms import Arm
from benchmarks.peers.figures import BATCH, DECODE, TTFT, summary_of
from benchmarks.peers.rounds import LAPS, measure_arms, rotated
from benchmarks.peers.worker_process import WorkerProcess
from tests.benchmarks.scripted_arms import WORKLOAD, scripted_arm, settings, start_scripted


def test_every_engine_has_every_place_of_the_order_once() -> None:
    orders = [rotated("abc", number) for number in range(4)]
    assert orders == [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"], ["a", "b", "c"]]
    assert rotated([], 3) == []


def test_figures_come_from_what_the_engines_say(tmp_path: Path) -> None:
    told: list[str] = []
    arms = [scripted_arm("fast"), scripted_arm("slow")]
    results = measure_arms(arms, settings(rounds=2), partial(start_scripted, folder=tmp_path), told.append)
    assert [result.ran for result in results] == [True, True]
    fast, slow = results
    assert summary_of(fast, TTFT).values == pytest.approx([100.0] * 2 * LAPS)
    assert summary_of(slow, TTFT).median == pytest.approx(200.0)
    # 11 tokens: ten after the first, each 10 ms.
    assert summary_of(fast, DECODE).median == pytest.approx(100.0)
    # 3 requests of 4 tokens, two at once.
    assert summary_of(fast, BATCH).median == pytest.approx(200.0)
    assert fast.single_ids == [18 + index for index in range(11)]
    assert [len(ids) for ids in fast.batch_ids] == [4, 4, 4]
    assert fast.widths is not None
    assert fast.peak_rss_mib is not None
    rounds = [text.removeprefix("round ") for text in told if text.startswith("round")]
    laps = [f"lone request, lap {lap + 1} of {LAPS}" for lap in range(LAPS)]
    assert rounds == [
        *(f"1 of 2: {lap}" for lap in laps),
        "1 of 2: batch of scripted fast",
        "1 of 2: batch of scripted slow",
        *(f"2 of 2: {lap}" for lap in laps),
        "2 of 2: batch of scripted slow",
        "2 of 2: batch of scripted fast",
    ]


def test_lone_requests_of_all_engines_follow_each_other_before_any_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    ask = WorkerProcess.ask

    def recorded(worker: WorkerProcess, command: str, timeout_s: float, **arguments: Any) -> dict[str, Any]:
        if arguments.get("tokens") in (WORKLOAD.single_tokens, WORKLOAD.batch_tokens):
            asked.append(f"{command} {names[worker.pid]}")
        return ask(worker, command, timeout_s, **arguments)

    names: dict[int, str] = {}

    def start(arm: Arm) -> WorkerProcess:
        worker = start_scripted(arm, tmp_path)
        names[worker.pid] = arm.precision.name
        return worker

    monkeypatch.setattr(WorkerProcess, "ask", recorded)
    monkeypatch.setattr("benchmarks.peers.rounds.WARM_UP_TOKENS", 1)
    measure_arms([scripted_arm("fast"), scripted_arm("slow")], settings(), start, lambda _text: None)
    assert asked == [
        *("single fast", "single slow"),
        *("single slow", "single fast"),
        *("single fast", "single slow"),
        *("batch fast", "batch slow"),
    ]


def test_engines_that_fail_say_so_and_the_others_go_on(tmp_path: Path) -> None:
    names = ("cannot-load", "dies-at-batch", "raises", "short", "fast")
    told: list[str] = []
    results = measure_arms(
        [scripted_arm(name) for name in names],
        settings(rounds=2),
        partial(start_scripted, folder=tmp_path),
        told.append,
    )
    failures = {result.arm.precision.name: result.failure for result in results}
    assert failures["fast"] is None
    assert (len(results[-1].singles), len(results[-1].batches)) == (2 * LAPS, 2)
    for name, words in {
        "cannot-load": "failed to load: FileNotFoundError: models/weights is missing",
        "dies-at-batch": "died at batch (signal 6: out of memory)",
        "raises": "failed to single: RuntimeError: the cache is full",
        "short": "gave 10 tokens or answers where 11 were asked for",
    }.items():
        failure = failures[name]
        assert failure is not None
        assert words in failure
        assert "\n" not in failure
        assert failure in told
    assert [result.ran for result in results] == [False] * 4 + [True]


def test_no_worker_outlives_an_interrupted_comparison(tmp_path: Path) -> None:
    started: list[WorkerProcess] = []

    def start(arm: Arm) -> WorkerProcess:
        started.append(start_scripted(arm, tmp_path))
        return started[-1]

    def interrupt(text: str) -> None:
        if text.startswith("round"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_arms([scripted_arm("fast"), scripted_arm("slow")], settings(), start, interrupt)
    assert len(started) == 2
    # Ended and waited for: a second wait gives the code at once.
    assert [worker._process.wait(timeout=0) for worker in started] == [-9, -9]
