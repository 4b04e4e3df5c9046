"""Waiting for a server, on a virtual clock: when it looks, what it makes of each answer, when it gives up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from quantgate.arm_life.ready import PROBE_SECONDS, Probe, Readiness, wait_until_ready
from quantgate.arm_life.settings import ReadyCheck
from quantgate.replay.virtual_time import run_in_virtual_time
from quantgate.targets.openai.endpoint import EndpointError
from quantgate_engine.clock import VirtualClock

SECOND = 1_000_000_000
REFUSED = EndpointError("http://x: nothing listens there.", "connect")

Answer = int | EndpointError | None
"""A status, no connection, or (None) silence."""


def wait(
    answer: Callable[[str, float], Answer],
    *,
    check: ReadyCheck | None = None,
    exits_after: float = float("inf"),
) -> tuple[Readiness, float, list[tuple[str, float]]]:
    """`answer(path, seconds)`; returns what was found, after how many seconds, and every look."""
    looks: list[tuple[str, float]] = []

    async def main(clock: VirtualClock) -> tuple[Readiness, float]:
        async def probe(path: str) -> int:
            seconds = clock.now_ns() / SECOND
            looks.append((path, seconds))
            given = answer(path, seconds)
            if isinstance(given, EndpointError):
                raise given
            if given is None:
                await asyncio.sleep(1000)
            return given or 0

        typed: Probe = probe
        found = await wait_until_ready(
            check or ReadyCheck(timeout_s=10, interval_s=1),
            typed,
            clock,
            exited=lambda: clock.now_ns() / SECOND >= exits_after,
        )
        return found, clock.now_ns() / SECOND

    found, seconds = run_in_virtual_time(main)
    return found, seconds, looks


def test_it_waits_while_nobody_listens_and_while_weights_load() -> None:
    found, seconds, looks = wait(lambda _, now: REFUSED if now < 2 else 503 if now < 4 else 200)
    assert (found.ready, seconds) == (True, 4.0)
    # A server that knows the first path is not asked for the second: its models may be listed while it loads.
    assert looks == [("/health", float(second)) for second in range(5)]


def test_a_path_that_the_server_does_not_know_is_passed_over() -> None:
    found, seconds, looks = wait(lambda path, _: 404 if path == "/health" else 200)
    assert (found.ready, found.path, seconds) == (True, "/v1/models", 0.0)
    assert [path for path, _ in looks] == ["/health", "/v1/models"]


def test_the_status_to_wait_for_may_be_another() -> None:
    check = ReadyCheck(paths=["/ping"], status=204, timeout_s=3, interval_s=1)
    found, seconds, _ = wait(lambda _, now: 200 if now < 2 else 204, check=check)
    assert (found.ready, seconds) == (True, 2.0)


def test_it_gives_up_at_the_deadline_with_what_it_saw_last() -> None:
    found, seconds, _ = wait(lambda _path, _now: 503)
    assert (found.ready, seconds, found.words) == (False, 10.0, "/health answered with status 503")
    found, seconds, _ = wait(lambda _path, _now: REFUSED)
    assert (found.error, seconds, found.words) == (REFUSED, 10.0, "/health could not be reached")
    found, _, _ = wait(lambda _path, _now: 404)
    assert found.words == "/v1/models answered with status 404"


def test_a_server_that_is_silent_is_not_waited_for_without_end() -> None:
    found, seconds, looks = wait(lambda _path, now: None if now == 0 else 200)
    assert (found.ready, seconds) == (True, PROBE_SECONDS + 1)
    assert len(looks) == 2
    silent, _, _ = wait(lambda _path, _now: None)
    assert (silent.ready, silent.words) == (False, "/health did not answer")


def test_the_end_of_the_process_ends_the_wait_whoever_answers_there() -> None:
    found, seconds, looks = wait(lambda _path, _now: REFUSED, exits_after=3)
    assert (found.exited, found.ready, seconds, len(looks)) == (True, False, 3.0, 3)
    found, _, looks = wait(lambda _path, _now: 200, exits_after=0)
    assert (found.exited, found.ready, looks) == (True, False, [])


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_not_waited_for(status: int) -> None:
    found, seconds, _ = wait(lambda _path, _now: status)
    assert (found.key_refused, seconds) == (True, 0.0)
