"""One load by several processes: dealt whole, sent against one anchor, and ended with the run however it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable
from functools import partial

import pytest
from tests.replay.plans import MS, plan_of, planned

from quantgate.replay.arms import ReplayArm
from quantgate.replay.driver import sessions
from quantgate.replay.fidelity import certify
from quantgate.replay.load_processes.crew import LoadCrew, LoadProcessError, dealt
from quantgate.replay.load_processes.messages import TargetRecipe
from quantgate.replay.observation import RequestObservation
from quantgate.replay.replay_log import ReplayLog
from quantgate.replay.run_replay import ReplayHooks, ReplayOptions, run_replay
from quantgate.targets.base import TargetGoneError, TokenEvent
from quantgate.targets.scripted import ScriptedAnswer, ScriptedTarget
from quantgate.workload.plan import PlannedRequest
from quantgate_engine.clock import Clock, MonotonicClock

NO_LIMIT_MS = 1e9


def quick(_: PlannedRequest) -> ScriptedAnswer:
    return ScriptedAnswer((MS, MS, MS))


def endless(_: PlannedRequest) -> ScriptedAnswer:
    return ScriptedAnswer((3_600_000 * MS,))


class DyingTarget(ScriptedTarget):
    async def submit(self, request: PlannedRequest) -> AsyncGenerator[TokenEvent, None]:
        os.kill(os.getpid(), signal.SIGKILL)
        yield TokenEvent()


class GoneTarget(ScriptedTarget):
    async def submit(self, request: PlannedRequest) -> AsyncGenerator[TokenEvent, None]:
        raise TargetGoneError("the server is gone")
        yield TokenEvent()


def recipe_of(
    script: Callable[[PlannedRequest], ScriptedAnswer], kind: type[ScriptedTarget] = ScriptedTarget
) -> TargetRecipe:
    return partial(_made, kind, script)


def _made(kind: type[ScriptedTarget], script: Callable[[PlannedRequest], ScriptedAnswer], *, clock: Clock):
    return kind(script, clock, slots=64, arm_id="a")


def mixed_requests() -> list[PlannedRequest]:
    turns = [planned(f"s{turn}", at_ms=3, session_id="s", turn=turn, think_time_ns=MS) for turn in (1, 2, 3)]
    return [*(planned(f"r{index:02d}", at_ms=index) for index in range(17)), *turns]


def test_sessions_are_dealt_whole_and_every_request_once() -> None:
    requests = mixed_requests()
    parts = dealt(requests, 3)
    assert sorted(request.request_id for part in parts for request in part) == sorted(
        request.request_id for request in requests
    )
    assert sorted(len(sessions(part)) for part in parts) == [6, 6, 6]
    assert [sum(request.session_id == "s" for request in part) for part in parts].count(3) == 1
    assert dealt(requests, 3) == parts


def test_parts_are_merged_into_one_log_and_one_certificate() -> None:
    async def main() -> ReplayLog:
        clock, log, recipe = MonotonicClock(), ReplayLog(), recipe_of(quick)
        arm = ReplayArm("a", "baseline", recipe(clock=clock), recipe)
        await run_replay(
            plan_of(*mixed_requests()),
            [arm],
            log,
            clock=clock,
            origin_ns=clock.now_ns(),
            options=ReplayOptions(warmup_requests=0, load_processes=3),
        )
        return log

    log = asyncio.run(main())
    requests = log.requests()
    assert sorted(requests["request_id"].to_pylist()) == sorted(r.request_id for r in mixed_requests())
    assert set(requests["status"].to_pylist()) == {"finished"}
    assert set(requests["output_tokens"].to_pylist()) == {3}
    # Prompts do not travel back: they are put into the table from the plan.
    assert set(requests["prompt_tokens"].to_pylist()) == {4}
    rows = {row["request_id"]: row for row in requests.to_pylist()}
    anchor_ns = log.cells[0].anchor_ns
    assert [rows[f"r{index:02d}"]["scheduled_ns"] - anchor_ns for index in range(17)] == [i * MS for i in range(17)]
    assert (
        rows["s2"]["scheduled_ns"] == rows["s1"]["ended_ns"] + MS or rows["s2"]["scheduled_ns"] > rows["s1"]["ended_ns"]
    )
    assert all(row["sent_ns"] >= row["scheduled_ns"] for row in rows.values())
    certificate = certify("a", log.cells, requests_intended=20, lag_limit_ms=NO_LIMIT_MS)
    assert certificate.valid
    assert (certificate.driver_cpu_share or 0) > 0


def crew_ends(
    recipe: TargetRecipe, disturb: Callable[[asyncio.Task[int]], object] | None = None
) -> tuple[list[RequestObservation], list[int]]:
    """Replays 8 requests; raises what the crew raises, when all its processes are gone."""
    seen: list[RequestObservation] = []

    async def main() -> list[int]:
        crew = LoadCrew(recipe, 2, None)
        try:
            await crew.start()
            await crew.prepare([planned(f"r{index}", at_ms=0) for index in range(8)])
            replaying = asyncio.create_task(crew.replay(MonotonicClock().now_ns(), seen.append))
            if disturb is not None:
                asyncio.get_running_loop().call_later(0.2, disturb, replaying)
            await replaying
            return crew.pids
        finally:
            pids = crew.pids
            await crew.stop()
            assert not any(alive(pid) for pid in pids)

    return seen, asyncio.run(main())


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_what_had_ended_before_an_interrupt_is_in_the_log() -> None:
    """The interrupt comes with the first answer, while a thousand more are under way in the pipes."""
    log = ReplayLog()

    async def main() -> None:
        clock, recipe = MonotonicClock(), recipe_of(quick)
        replaying = asyncio.current_task()
        assert replaying is not None
        await run_replay(
            plan_of(*(planned(f"r{index:04d}") for index in range(1000))),
            [ReplayArm("a", "baseline", recipe(clock=clock), recipe)],
            log,
            clock=clock,
            origin_ns=clock.now_ns(),
            options=ReplayOptions(warmup_requests=0, load_processes=2),
            hooks=ReplayHooks(on_progress=lambda progress: replaying.cancel()),
        )

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert 1 <= log.requests().num_rows < 1000
    assert set(log.requests()["status"].to_pylist()) == {"finished"}
    assert not certify("a", log.cells, requests_intended=1000, lag_limit_ms=NO_LIMIT_MS).valid


def test_a_process_that_dies_ends_the_run_in_one_sentence() -> None:
    with pytest.raises(LoadProcessError, match=r"^The run is invalid: load process \d of 2 ended \(signal 9\) before"):
        crew_ends(recipe_of(quick, DyingTarget))


def test_a_target_that_is_gone_is_told_as_by_the_driver_itself() -> None:
    with pytest.raises(TargetGoneError, match=r"^the server is gone$"):
        crew_ends(recipe_of(quick, GoneTarget))


def test_an_interrupt_leaves_no_process() -> None:
    with pytest.raises(asyncio.CancelledError):
        crew_ends(recipe_of(endless), lambda replaying: replaying.cancel())


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL there")
def test_a_killed_run_leaves_no_process() -> None:
    program = (
        "import asyncio\n"
        "from tests.replay.test_load_processes import endless, recipe_of\n"
        "from quantgate.replay.load_processes.crew import LoadCrew\n"
        "async def main():\n"
        "    crew = LoadCrew(recipe_of(endless), 2, None)\n"
        "    await crew.start()\n"
        "    print(*crew.pids, flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        parent.kill()
    assert len(pids) == 2
    deadline_s = time.monotonic() + 30
    while any(map(alive, pids)) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert not any(map(alive, pids))
