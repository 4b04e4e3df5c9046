"""What keeps the driver on time, and what becomes of a run whose driver was kept from it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

import pytest
from tests.replay.plans import MS, answers, steady_plan

from quantgate.replay.arms import ReplayArm
from quantgate.replay.driver import Driver
from quantgate.replay.fidelity import certify
from quantgate.replay.garbage import only_new_garbage
from quantgate.replay.observation import RequestObservation
from quantgate.replay.replay_log import ReplayLog
from quantgate.replay.run_replay import ReplayHooks, ReplayOptions, run_replay
from quantgate.replay.virtual_time import run_in_virtual_time
from quantgate.store.manifest import FidelityCertificate
from quantgate.targets.scripted import ScriptedTarget
from quantgate_engine.clock import VirtualClock

REQUESTS = 200


def certified(beside: Callable[[VirtualClock], None], hooks: ReplayHooks | None = None) -> FidelityCertificate:
    """200 requests, one every 10 ms, with whatever `beside` puts on the loop before them."""

    async def main(clock: VirtualClock) -> ReplayLog:
        log = ReplayLog()
        target = ScriptedTarget(answers(20, 10, 10, 10), clock, slots=REQUESTS, arm_id="a")
        beside(clock)
        await run_replay(
            steady_plan(REQUESTS, every_ms=10),
            [ReplayArm("a", "baseline", target)],
            log,
            clock=clock,
            origin_ns=0,
            options=ReplayOptions(warmup_requests=0),
            hooks=hooks,
        )
        return log

    return certify("a", run_in_virtual_time(main).of_arm("a"), requests_intended=REQUESTS)


def test_a_free_driver_sends_everything_on_time() -> None:
    certificate = certified(lambda clock: None)
    assert (certificate.valid, certificate.lag_ms_max) == (True, 0.0)
    assert all(window.max_difference == 0 for window in certificate.windows)


def test_a_driver_that_is_starved_makes_the_run_invalid() -> None:
    """Something holds the event loop for 90 of every 100 ms: everything is sent, but not when it was due."""

    def hog(clock: VirtualClock) -> None:
        loop = asyncio.get_running_loop()

        def hold() -> None:
            clock.advance_ns(90 * MS)
            if clock.now_ns() < 3000 * MS:
                loop.call_later(0.010, hold)

        loop.call_later(0.010, hold)

    certificate = certified(hog)
    assert certificate.requests_delivered == REQUESTS
    assert not certificate.valid
    assert certificate.lag_ms_p99 > 50.0
    assert certificate.reasons == [
        f"1 % of the requests were sent more than {certificate.lag_ms_p99:.1f} ms after their schedule; "
        "the limit is 50 ms."
    ]


def test_a_long_plan_is_set_up_as_it_goes() -> None:
    """20 s of traffic: never more tasks than the requests of 100 ms to come, and those that are under way."""
    most = 0

    async def main(clock: VirtualClock) -> list[RequestObservation]:
        seen: list[RequestObservation] = []

        def note(observation: RequestObservation) -> None:
            nonlocal most
            seen.append(observation)
            most = max(most, len(asyncio.all_tasks()))

        target = ScriptedTarget(answers(20, 10), clock, slots=REQUESTS)
        await Driver(target, clock, note).replay(reversed(steady_plan(2000, every_ms=10).requests), anchor_ns=0)
        return seen

    seen = run_in_virtual_time(main)
    assert len(seen) == 2000
    assert all(observation.sent_ns == observation.scheduled_ns for observation in seen)
    assert 3 < most < 20


@pytest.mark.parametrize("fails", [False, True])
def test_the_garbage_collector_leaves_what_was_loaded_before_alone(fails: bool) -> None:
    before = gc.get_freeze_count()
    within: list[int] = []

    def note(_: object) -> None:
        within.append(gc.get_freeze_count())
        if fails:
            raise RuntimeError("the terminal is gone")

    if fails:
        with pytest.raises(ExceptionGroup):
            certified(lambda clock: None, ReplayHooks(on_progress=note))
    else:
        certified(lambda clock: None, ReplayHooks(on_progress=note))
    assert within[0] > before + 1000
    assert gc.get_freeze_count() <= before


def test_what_is_kept_in_the_cell_is_left_alone_too() -> None:
    counts: list[int] = []
    with only_new_garbage() as note_kept:
        counts.append(gc.get_freeze_count())
        kept = []
        for _ in range(1000):
            kept.append([object()])
            note_kept()
        counts.append(gc.get_freeze_count())
    assert counts[1] >= counts[0] + 900
    assert gc.get_freeze_count() == 0
