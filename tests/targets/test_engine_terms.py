"""A replay tells the bundled engine each request's class, session and patience; turns of an arm share no cache."""

from __future__ import annotations

from dataclasses import replace

from tests.replay.plans import drive

from quantgate.replay.virtual_time import run_in_virtual_time
from quantgate.targets.engine_terms import EngineTerms
from quantgate.targets.simulated import SimulatedTarget
from quantgate.workload.plan import PlannedRequest
from quantgate_engine.clock import VirtualClock
from quantgate_engine.config import EngineConfig
from quantgate_engine.request_terms import RequestTerms
from quantgate_engine.scheduler.batching.settings import BatchingSettings
from quantgate_engine.scheduler.slo_class import SLOClass

REQUEST = PlannedRequest("r", 0, (1, 2, 3), 4, slo_class="batch", session_id="s")


def test_the_terms_of_a_request_are_the_traces() -> None:
    terms = EngineTerms(("interactive", "batch"), timeout_s=7.0)
    terms.begin_turn()
    assert terms.of(REQUEST) == RequestTerms(slo_class="batch", timeout_s=7.0, session_id="s@1", cache_salt="turn 1")
    assert terms.of(replace(REQUEST, session_id=None)).session_id is None
    assert terms.notes == ()


def test_a_class_that_the_engine_does_not_have_is_its_first_and_noted_once() -> None:
    terms = EngineTerms(("chat", "rest"))
    for slo_class in ("premium", "rest", "batch", "premium"):
        expected = slo_class if slo_class == "rest" else None
        assert terms.of(replace(REQUEST, slo_class=slo_class)).slo_class == expected
    [note] = terms.notes
    assert note == "scheduled as chat, because the engine has no such SLO class: batch, premium"


def test_turns_of_an_arm_share_neither_salt_nor_session() -> None:
    terms = EngineTerms(("batch",))
    first, again = terms.of(REQUEST), terms.of(REQUEST)
    terms.begin_turn()
    later = terms.of(REQUEST)
    assert first == again
    assert first.cache_salt != later.cache_salt
    assert first.session_id != later.session_id


def _first_token_ns(slo_class: str) -> int:
    """Of a request that comes after ten others of the class `batch`, on an engine that runs one at a time."""

    async def main(clock: VirtualClock) -> int:
        classes = (SLOClass("interactive"), SLOClass("batch"))
        config = EngineConfig(max_active_requests=1, batching=BatchingSettings(slo_classes=classes))
        target = SimulatedTarget(clock, config=config)
        crowd = [replace(REQUEST, request_id=f"crowd-{number}", session_id=None) for number in range(10)]
        await target.start()
        late = PlannedRequest("late", 1, (1, 2, 3), 4, slo_class=slo_class)
        seen = await drive(target, clock, [*crowd, late])
        await target.stop()
        return seen["late"].token_times_ns[0]

    return run_in_virtual_time(main)


def test_an_urgent_request_of_a_trace_overtakes_the_others() -> None:
    assert _first_token_ns("interactive") < _first_token_ns("batch") / 2
