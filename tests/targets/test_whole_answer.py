"""Answers that are read whole have a longest time and size; what streams is bounded by whoever reads it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.targets.wire import URL

from quantgate.replay.virtual_time import run_in_virtual_time
from quantgate.targets.openai.endpoint import Endpoint
from quantgate.targets.openai.errors import EndpointError
from quantgate.targets.openai.scripted_transport import ScriptedTransport
from quantgate.targets.openai.settings import EndpointSettings
from quantgate.targets.openai.whole_answer import MOST_BYTES, EndlessAnswerError
from quantgate.targets.openai.wire_script import WireAnswer
from quantgate_engine.clock import VirtualClock

SECOND = 1_000_000_000
Use = Callable[[Endpoint], Awaitable[Any]]

CALLS: dict[str, Use] = {
    "get_json": lambda endpoint: endpoint.get_json("/v1/models"),
    "get_text": lambda endpoint: endpoint.get_text("/metrics"),
    "post_json": lambda endpoint: endpoint.post_json("/v1/completions", {}),
    "post_bytes": lambda endpoint: endpoint.post_bytes("/v1/completions", {}),
}


def seconds_until_failure(answer: WireAnswer, use: Use, **settings: Any) -> tuple[EndpointError, float]:
    async def main(clock: VirtualClock) -> tuple[EndpointError, float]:
        transport = ScriptedTransport(lambda request: answer, clock)
        asked = EndpointSettings(url=URL, **settings)
        async with Endpoint(asked, transport=transport, clock=clock, environment={}) as endpoint:
            with pytest.raises(EndpointError) as raised:
                await use(endpoint)
        assert transport.in_flight == 0
        return raised.value, clock.now_ns() / SECOND

    return run_in_virtual_time(main)


def dripping(status: int = 200) -> WireAnswer:
    """A byte a second: never silent for long."""
    return WireAnswer(tuple((SECOND, b" ") for _ in range(1000)), status)


@pytest.mark.parametrize("name", CALLS)
def test_an_answer_that_drips_is_given_up(name: str) -> None:
    error, seconds = seconds_until_failure(dripping(), CALLS[name], connect_timeout_s=2.0, read_timeout_s=5.0)
    assert isinstance(error, EndlessAnswerError)
    assert (error.kind, seconds) == ("timeout", 7.0)
    assert "had not come to its end after 7 s" in str(error)


@pytest.mark.parametrize(("name", "most_seconds"), [("get_json", 40.0), ("post_json", 310.0)])
def test_what_computes_nothing_has_less_time(name: str, most_seconds: float) -> None:
    error, seconds = seconds_until_failure(dripping(), CALLS[name])
    assert seconds == most_seconds
    assert ("read_timeout_s" in str(error)) == (name == "post_json")


def test_the_explanation_of_a_status_is_not_waited_for_long() -> None:
    for use in (CALLS["post_json"], lambda endpoint: endpoint.stream("/v1/completions", {})):
        error, seconds = seconds_until_failure(dripping(status=500), use)
        assert (error.status, error.kind, seconds) == (500, "status_5xx", 5.0)


@pytest.mark.parametrize("name", CALLS)
def test_an_answer_without_end_does_not_fill_the_memory(name: str) -> None:
    answer = WireAnswer(((0, b" " * (1 << 20)),) * 1000)
    error, _ = seconds_until_failure(answer, CALLS[name])
    assert isinstance(error, EndlessAnswerError)
    assert f"after {MOST_BYTES >> 20} MiB" in str(error)


def test_whoever_knows_how_much_comes_says_so() -> None:
    answer = WireAnswer(((0, b"x" * 10),))

    def most(limit: int) -> Use:
        return lambda endpoint: endpoint.post_bytes("/logits", {}, limit)

    assert isinstance(seconds_until_failure(answer, most(9))[0], EndlessAnswerError)

    async def whole() -> bytes:
        transport = ScriptedTransport(lambda request: answer, VirtualClock())
        async with Endpoint(EndpointSettings(url=URL), transport=transport, environment={}) as endpoint:
            return bytes(await most(10)(endpoint))

    assert asyncio.run(whole()) == b"x" * 10
