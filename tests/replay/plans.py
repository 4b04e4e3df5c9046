"""Small plans and scripted targets for replay tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from quantgate.replay.driver import Driver
from quantgate.replay.observation import RequestObservation
from quantgate.targets.base import Target
from quantgate.targets.scripted import ScriptedAnswer
from quantgate.workload.plan import PlannedRequest, ReplayPlan
from quantgate_engine.clock import VirtualClock

MS = 1_000_000


def planned(request_id: str, at_ms: int = 0, output_tokens: int = 3, **changes: Any) -> PlannedRequest:
    return PlannedRequest(request_id, at_ms * MS, (1, 2, 3, 4), output_tokens, **changes)


def plan_of(*requests: PlannedRequest) -> ReplayPlan:
    return ReplayPlan(tuple(requests), source="test", source_sha256="0" * 64)


def steady_plan(count: int, every_ms: int, blocks: int = 1) -> ReplayPlan:
    """`count` requests at even gaps, cut into blocks of equal length."""
    return plan_of(*(planned(f"r{i:03d}", i * every_ms, block_index=i * blocks // count) for i in range(count)))


def answers(first_ms: int, *gaps_ms: int) -> Callable[[PlannedRequest], ScriptedAnswer]:
    """Every request is served alike: its first token after `first_ms`, the others after the gaps."""
    return lambda request: ScriptedAnswer(tuple(delay * MS for delay in (first_ms, *gaps_ms)))


async def drive(
    target: Target, clock: VirtualClock, requests: Sequence[PlannedRequest], timeout_ns: int | None = None
) -> dict[str, RequestObservation]:
    """Replays the requests, anchored at the clock's zero, and returns what was seen of each."""
    seen: list[RequestObservation] = []
    await Driver(target, clock, seen.append, timeout_ns).replay(requests, anchor_ns=0)
    assert len({observation.request.request_id for observation in seen}) == len(seen)
    return {observation.request.request_id: observation for observation in seen}
