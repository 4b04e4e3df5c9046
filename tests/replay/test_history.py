"""Whose answers later turns see: by hand, and through the driver on a virtual clock."""

from __future__ import annotations

from typing import Any

import pytest
from tests.replay.plans import MS, answers

from quantgate.replay.driver import Driver
from quantgate.replay.history import AnsweredTurn, LiveHistory, RecordedHistory
from quantgate.replay.observation import RequestObservation
from quantgate.replay.virtual_time import run_in_virtual_time
from quantgate.targets.base import RequestEnd
from quantgate.targets.scripted import ScriptedAnswer, ScriptedTarget
from quantgate.traces.record import Message
from quantgate.workload.plan import PlannedRequest
from quantgate_engine.clock import VirtualClock

SYSTEM, ASK, REPLY, MORE, AGAIN, LAST = (
    Message("system", "Be kind."),
    Message("user", "One?"),
    Message("assistant", "recorded 1"),
    Message("user", "Two?"),
    Message("assistant", "recorded 2"),
    Message("user", "Three?"),
)
TURNS = ((SYSTEM, ASK), (SYSTEM, ASK, REPLY, MORE), (SYSTEM, ASK, REPLY, MORE, AGAIN, LAST))


def encode(messages: tuple[Message, ...]) -> tuple[int, ...]:
    """One id a message: its length in characters."""
    return tuple(len(message.content) for message in messages)


def planned(turn: int, messages: tuple[Message, ...] | None = None, **changes: Any) -> PlannedRequest:
    messages = TURNS[turn - 1] if messages is None else messages
    fields = {"session_id": "s", "turn": turn, "messages": messages, "prompt_token_ids": encode(messages)} | changes
    return PlannedRequest(f"t{turn}", turn * MS, output_tokens=3, **fields)


def contents(request: PlannedRequest) -> list[str]:
    return [message.content for message in request.messages or ()]


def test_recorded_history_sends_the_plan() -> None:
    assert RecordedHistory().next_turn(planned(2), [AnsweredTurn(planned(1), "live 1")]) is not None
    assert RecordedHistory().next_turn(planned(2), [AnsweredTurn(planned(1), "live 1")]) == planned(2)


def test_live_history_puts_each_answer_in_its_place() -> None:
    earlier = [AnsweredTurn(planned(1), "live 1"), AnsweredTurn(planned(2), "my live 2")]
    request = LiveHistory(encode).next_turn(planned(3), earlier)
    assert contents(request) == ["Be kind.", "One?", "live 1", "Two?", "my live 2", "Three?"]
    assert request.prompt_token_ids == encode(request.messages or ())
    assert (request.request_id, request.scheduled_ns, request.output_tokens, request.turn) == ("t3", 3 * MS, 3, 3)


def test_an_answer_that_the_arm_did_not_give_stays_the_logs() -> None:
    earlier = [AnsweredTurn(planned(1), None), AnsweredTurn(planned(2), "live 2")]
    assert contents(LiveHistory(encode).next_turn(planned(3), earlier))[2::2] == ["recorded 1", "live 2"]


@pytest.mark.parametrize(
    "messages",
    [
        (Message("system", "Be rude."), ASK, REPLY, MORE),
        (SYSTEM, ASK, Message("user", "Hello?"), MORE),
        (SYSTEM, ASK),
    ],
)
def test_a_turn_that_does_not_continue_the_conversation_is_sent_as_planned(messages: tuple[Message, ...]) -> None:
    request = planned(2, messages)
    assert LiveHistory(encode).next_turn(request, [AnsweredTurn(planned(1), "live 1")]) == request


def test_prompts_that_are_no_chat_are_sent_as_planned() -> None:
    raw = PlannedRequest("t2", 0, (1, 2), 3, session_id="s", turn=2, prompt_text="raw")
    first = PlannedRequest("t1", 0, (1, 2), 3, session_id="s", turn=1, prompt_text="raw")
    assert LiveHistory(encode).next_turn(raw, [AnsweredTurn(first, "live 1")]) == raw


def test_without_token_ids_the_recorded_count_no_longer_holds() -> None:
    request = LiveHistory(None).next_turn(
        planned(2, prompt_token_ids=(), prompt_token_count=40),
        [AnsweredTurn(planned(1, prompt_token_ids=(), prompt_token_count=20), "live 1")],
    )
    assert contents(request)[2] == "live 1"
    assert (request.prompt_token_ids, request.prompt_token_count) == ((), None)


def test_the_driver_gives_each_turn_the_answers_before_it() -> None:
    def script(request: PlannedRequest) -> ScriptedAnswer:
        if request.request_id == "t2":
            return ScriptedAnswer((10 * MS,), end=RequestEnd("rejected", error="full"))
        return answers(30, 10)(request)

    async def main(clock: VirtualClock) -> list[RequestObservation]:
        seen: list[RequestObservation] = []
        target = ScriptedTarget(script, clock, slots=1)
        driver = Driver(target, clock, seen.append, history=LiveHistory(encode))
        await driver.replay([planned(3, think_time_ns=5 * MS), planned(1), planned(2)], anchor_ns=0)
        return seen

    seen = run_in_virtual_time(main)
    assert [contents(observation.request)[2::2] for observation in seen] == [
        [],
        ["1 2"],
        ["1 2", "recorded 2"],
    ]
    assert [observation.sent_ns // MS for observation in seen] == [1, 41, 56]
