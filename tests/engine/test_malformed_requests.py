"""One request that is wrong, or one step that breaks, never takes anybody else's answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.pools import Pools, bulk
from tests.engine.simulation import Simulation, prompt

from quantgate_engine.engine import EngineCore
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.request import AbortCause, Request, RequestState
from quantgate_engine.request_terms import DEFAULT_TERMS
from quantgate_engine.router.router_core import RouterCore
from quantgate_engine.sampling_params import SamplingParams
from quantgate_engine.scheduler.admission.caps import Caps

PARAMS = SamplingParams(max_tokens=3)

MALFORMED: dict[str, tuple[tuple[Any, ...], str]] = {
    "text as a token": (("x", (1, "a"), PARAMS), "Request 'x' has 'a' as its prompt's token 1; expected a token id"),
    "no number": (("x", (None,), PARAMS), "Request 'x' has None as its prompt's token 0; expected a token id"),
    "a truth value": (("x", (1, True), PARAMS), "Request 'x' has True as its prompt's token 1"),
    "half a token": (("x", (1.5,), PARAMS), "Request 'x' has 1.5 as its prompt's token 0"),
    "a list": (("x", [1, 2], PARAMS), "Request 'x' has the prompt [1, 2]; expected a tuple of token ids."),
    "no id": ((None, (1,), PARAMS), "A request's id is None; expected text of at least 1 character."),
    "a list as id": ((["x"], (1,), PARAMS), "A request's id is ['x']; expected text"),
    "a map of params": (
        ("x", (1,), {"max_tokens": 3}),
        "Request 'x' has the params {'max_tokens': 3}; expected a value of the cl",
    ),
    "no terms": (
        ("x", (1,), PARAMS, None),
        "Request 'x' has the terms None; expected a value of the class RequestTerms.",
    ),
}


@pytest.mark.parametrize(("arguments", "sentence"), MALFORMED.values(), ids=MALFORMED.keys())
@pytest.mark.parametrize("make", [lambda: Simulation().core, lambda: Pools(bulk()).core], ids=["engine", "router"])
def test_a_malformed_request_is_refused_before_anything_knows_of_it(
    make: Any, arguments: tuple[Any, ...], sentence: str
) -> None:
    core: EngineCore | RouterCore = make()
    beside = core.add_request("beside", (1, 2), PARAMS, DEFAULT_TERMS)
    with pytest.raises(ConfigurationError) as refused:
        core.add_request(*arguments)
    assert str(refused.value).startswith(sentence)
    assert core.refusal(*arguments) == str(refused.value)
    while core.has_work:
        core.step()
    assert beside.state is RequestState.FINISHED
    core.check_integrity()


def test_what_a_pool_refuses_is_not_in_the_routers_book() -> None:
    pools = Pools(bulk())
    pools.core.pools[0].core.add_request("x", (1, 2), PARAMS, DEFAULT_TERMS)
    with pytest.raises(ConfigurationError, match="Request id 'x' belongs to a request that has not ended"):
        pools.core.add_request("x", (1, 2), PARAMS, DEFAULT_TERMS)
    assert pools.core.pool_of("x") is None


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda core: core.abort(["a"], AbortCause.CANCELLED),
            r"^The request id of an abort is \['a'\]; expected text\.$",
        ),
        (
            lambda core: core.abort("a", ["why"]),
            r"^The cause of an abort is \['why'\]; expected a value of the class AbortCause\.$",
        ),
        (lambda core: core.finish(["a"]), r"^The request id of a finish is \['a'\]; expected text\.$"),
    ],
)
def test_what_ends_nobody_is_refused_at_the_call(call: Callable[[EngineCore], None], sentence: str) -> None:
    simulation = Simulation()
    request = simulation.core.add_request("a", prompt(4), PARAMS)
    with pytest.raises(ConfigurationError, match=sentence):
        call(simulation.core)
    simulation.run()
    assert request.state is RequestState.FINISHED


def test_whatever_is_raised_while_a_request_is_received_ends_that_one_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = Simulation()
    right = simulation.core._admission.refusal

    def refusal(request: Request) -> str | None:
        if request.request_id == "bad":
            raise OverflowError("too much")
        return right(request)

    monkeypatch.setattr(simulation.core._admission, "refusal", refusal)
    good, bad = (simulation.core.add_request(name, prompt(4), PARAMS) for name in ("good", "bad"))
    simulation.run()
    assert (good.state, bad.state) == (RequestState.FINISHED, RequestState.REJECTED)
    assert bad.error == "Request bad was rejected: OverflowError: too much."


def _broken(core: EngineCore, monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """Two requests of which one runs and one waits, in an engine whose step breaks between its halves."""
    requests = [core.add_request(name, prompt(8), PARAMS) for name in ("runs", "waits")]
    core.step()

    def broken(*_: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(core._computation, "count", broken)
    with pytest.raises(KeyError):
        core.step()
    return requests


def test_a_step_that_breaks_leaves_a_clean_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = Simulation(max_active_requests=1)
    caps = Caps(max_context_tokens=20, max_active_requests=1)
    simulation.core.set_caps(caps)
    requests = _broken(simulation.core, monkeypatch)
    assert not simulation.core.has_work
    assert [(request.state, request.abort_cause) for request in requests] == [
        (RequestState.ABORTED, AbortCause.ERROR)
    ] * 2
    assert simulation.core.aborts_by_cause[AbortCause.ERROR] == 2
    assert simulation.core.caps == caps
    simulation.core.check_integrity()
    again = simulation.core.add_request("runs", prompt(8), PARAMS)
    simulation.run()
    assert again.state is RequestState.FINISHED


def test_an_engine_that_broke_takes_requests_again_when_it_is_reopened(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = Simulation()
    _broken(simulation.core, monkeypatch)
    simulation.core.shut_down(drain=False)
    simulation.core.reopen()
    good = simulation.core.add_request("good", prompt(8), PARAMS)
    simulation.run()
    assert good.state is RequestState.FINISHED


def test_a_shutdown_outlives_a_step_that_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = Simulation()
    simulation.core.shut_down(drain=True)
    simulation.core.step()
    _broken(simulation.core, monkeypatch)
    late = simulation.core.add_request("late", prompt(8), PARAMS)
    simulation.run()
    assert late.state is RequestState.REJECTED


def test_whoever_was_left_behind_is_given_up_when_an_engine_is_reopened() -> None:
    pools = Pools(bulk())
    left = pools.core.add_request("left", prompt(8), PARAMS, DEFAULT_TERMS)
    pools.core.step()
    pools.core.reopen()
    assert (left.state, left.abort_cause) == (RequestState.ABORTED, AbortCause.SHUTDOWN)
    assert not pools.core.has_work
    pools.core.check_integrity()
    again = pools.core.add_request("left", prompt(8), PARAMS, DEFAULT_TERMS)
    while pools.core.has_work:
        pools.core.step()
    assert again.state is RequestState.FINISHED


def test_who_comes_in_while_everybody_is_given_up_is_not_received() -> None:
    simulation = Simulation()
    simulation.core.add_request("late", prompt(8), PARAMS)
    note = simulation.core._inbox[0]
    simulation.core._begin_anew(AbortCause.ERROR)
    simulation.core._inbox.append(note)
    assert simulation.run() == []
