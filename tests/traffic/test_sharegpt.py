"""ShareGPT conversations: which turns are requests, what is left out, and what is refused."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from quantgate.traces.import_settings import ImportSettings
from quantgate.traces.reader import ImportedTrace, import_trace
from quantgate.traces.record import Message, TraceRecord
from quantgate_engine.errors import ConfigurationError


def talk(*turns: tuple[str, Any], **more: Any) -> dict[str, Any]:
    return {"conversations": [{"from": who, "value": value} for who, value in turns], **more}


TWO_TURNS = talk(("human", "hi"), ("gpt", "hello you"), ("human", "how?"), ("gpt", "so so so"), id="a")


def written(tmp_path: Path, *rows: Any, style: str = "lines") -> Path:
    path = tmp_path / "talks.json"
    if style == "lines":
        path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    else:
        path.write_text(json.dumps(rows, indent=2 if style == "indented" else None))
    return path


def imported(tmp_path: Path, *rows: Any, style: str = "lines", **settings: Any) -> ImportedTrace:
    return import_trace(written(tmp_path, *rows, style=style), ImportSettings(**settings))


def refusal(tmp_path: Path, *rows: Any, style: str = "lines", **settings: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        imported(tmp_path, *rows, style=style, **settings)
    sentence = str(caught.value)
    assert sentence.isprintable()
    return sentence.removeprefix(f"{tmp_path}/")


def counts(trace: ImportedTrace) -> dict[str, Any]:
    return trace.steps[0].parameters


def roles(record: TraceRecord) -> str:
    return "".join(message.role[0] for message in record.messages or ())


@pytest.mark.parametrize("style", ["lines", "one line", "indented"])
def test_each_question_with_an_answer_is_a_request_of_its_conversations_session(tmp_path: Path, style: str) -> None:
    trace = imported(tmp_path, TWO_TURNS, talk(("human", "x"), ("gpt", "123456789")), style=style)
    hi, hello, how = Message("user", "hi"), Message("assistant", "hello you"), Message("user", "how?")
    assert trace.records == [
        TraceRecord("a-1", 0, 3, messages=(hi,), session_id="session-000001"),
        TraceRecord("a-2", 0, 2, messages=(hi, hello, how), session_id="session-000001", turn=2),
        TraceRecord("conversation-2-1", 0, 3, messages=(Message("user", "x"),), session_id="session-000002"),
    ]
    step = trace.steps[0]
    assert (step.name, step.rows_in, step.rows_out, step.rows_touched) == ("read conversations", 3, 3, 0)
    assert step.parameters == {
        "conversations": 2,
        "conversations_without_request": 0,
        "left_out": {},
        "output_lengths_from": {"answer_characters": 3},
        "without_times": 3,
        "dropped_parts": {},
        "requests_that_offered_tools": 0,
    }


def test_a_tokenizer_counts_the_answers(tmp_path: Path) -> None:
    trace = imported(tmp_path, TWO_TURNS, count_tokens=lambda text: len(text.split()))
    assert [record.max_tokens for record in trace.records] == [2, 3]
    assert counts(trace)["output_lengths_from"] == {"answer": 2}


@pytest.mark.parametrize("answerer", ["gpt", "assistant", "chatgpt", "bing", "bard"])
@pytest.mark.parametrize("asker", ["human", "user"])
def test_those_who_speak_have_several_names(tmp_path: Path, asker: str, answerer: str) -> None:
    row = talk(("system", "be brief"), (asker, "hi"), (answerer, "ho"))
    assert [roles(record) for record in imported(tmp_path, row).records] == ["su"]


def test_turns_may_be_written_as_chat_messages(tmp_path: Path) -> None:
    row = {"conversations": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]}
    assert imported(tmp_path, row).records[0].messages == (Message("user", "hi"),)


def test_what_a_tool_gave_back_is_asked_about_too(tmp_path: Path) -> None:
    row = talk(
        ("human", "weather?"), ("function_call", '{"name": "w"}'), ("observation", "3"), ("observation", "4"),
        ("gpt", "cold"), tools="[{}]", system="be brief",
    )  # fmt: skip
    trace = imported(tmp_path, row)
    assert [roles(record) for record in trace.records] == ["su", "suatt"]
    assert counts(trace)["requests_that_offered_tools"] == 2
    assert counts(trace)["left_out"] == {}


LEFT_OUT: list[tuple[str, list[tuple[str, Any]], dict[str, int], list[str], int]] = [
    ("opens with an answer", [("gpt", "b"), ("human", "c"), ("gpt", "d")], {"answer_without_question": 1}, ["u"], 0),
    ("ends with a question", [("human", "a"), ("gpt", "b"), ("human", "c")], {"unanswered": 1}, ["u"], 2),
    ("two questions", [("human", "a"), ("human", "b"), ("gpt", "c")], {"unanswered": 1}, ["uu"], 0),
    (
        "two answers",
        [("human", "a"), ("gpt", "b"), ("gpt", "c"), ("human", "d"), ("gpt", "e")],
        {"answer_without_question": 1}, ["u", "uaau"], 2,
    ),
    (
        "an empty answer",
        [("human", "a"), ("gpt", "b"), ("human", "c"), ("gpt", " \n"), ("human", "d"), ("gpt", "e")],
        {"behind_empty_turn": 2}, ["u"], 3,
    ),
    (
        "an empty question",
        [("human", "a"), ("gpt", "b"), ("human", None), ("gpt", "c")],
        {"behind_empty_turn": 1}, ["u"], 2,
    ),
    (
        "an empty last question",
        [("human", "a"), ("gpt", "b"), ("human", "")],
        {"behind_empty_turn": 1}, ["u"], 2,
    ),
]  # fmt: skip
KINDS = {
    "unanswered": "expected an answer right behind this turn",
    "answer_without_question": "expected a human's or a tool's turn right before this answer",
    "behind_empty_turn": "expected a text, got an empty turn, from which on the conversation is not replayed",
}


@pytest.mark.parametrize(
    ("turns", "left_out", "kept", "where"), [case[1:] for case in LEFT_OUT], ids=[case[0] for case in LEFT_OUT]
)
def test_turns_that_are_no_request_are_counted_and_strictly_refused(
    tmp_path: Path, turns: list[tuple[str, Any]], left_out: dict[str, int], kept: list[str], where: int
) -> None:
    trace = imported(tmp_path, talk(*turns))
    assert [roles(record) for record in trace.records] == kept
    assert [record.turn for record in trace.records] == list(range(1, len(kept) + 1))
    step = trace.steps[0]
    lost = sum(left_out.values())
    assert step.parameters["left_out"] == left_out
    assert (step.rows_in, step.rows_out, step.rows_touched) == (len(kept) + lost, len(kept), lost)
    [kind] = left_out
    assert refusal(tmp_path, TWO_TURNS, talk(*turns), strict=True) == (
        f"talks.json, line 2, conversation 2, field conversations.{where}: {KINDS[kind]}; mend or remove the "
        "conversation, or read the file without strict."
    )


def test_an_answer_without_a_token_is_left_out_and_turns_count_on(tmp_path: Path) -> None:
    trace = imported(tmp_path, TWO_TURNS, count_tokens=lambda text: 0 if text == "hello you" else 5)
    assert [(record.request_id, record.turn, roles(record)) for record in trace.records] == [("a-1", 1, "uau")]
    assert counts(trace)["left_out"] == {"empty_answer": 1}


def test_conversations_without_any_request_are_counted(tmp_path: Path) -> None:
    trace = imported(tmp_path, talk(), TWO_TURNS, talk(("human", "hello?")))
    assert counts(trace)["conversations_without_request"] == 2
    assert counts(trace)["left_out"] == {"unanswered": 1}
    assert refusal(tmp_path, talk(), TWO_TURNS, strict=True).startswith(
        "talks.json, line 1, conversation 1, expected a question with an answer; mend "
    )


def test_a_file_without_any_request_is_refused_with_the_counts(tmp_path: Path) -> None:
    assert refusal(tmp_path, talk(), talk(("human", "a")), talk(("human", "a"), ("gpt", ""))) == (
        "talks.json: none of its 3 conversations has a request that can be replayed (behind empty turn: 1, "
        "unanswered: 1); the first one, line 2, conversation 2, field conversations.0: expected an answer right behind "
        "this turn."
    )
    assert refusal(tmp_path, talk()).endswith("can be replayed (they have no turns).")


TURN = "field conversations.1"
WRONG: list[tuple[Any, str]] = [
    (talk(("human", "a"), ("gpt", 3)), f"{TURN}.value: expected a text, got a number."),
    (talk(("human", "a"), ("gpt", ["b"])), f"{TURN}.value: expected a text, got a list."),
    (talk(("human", "a"), ("gpt", {"secret": 1})), f"{TURN}.value: expected a text, got an object."),
    (talk(("human", "a"), ("gpt", "\ud83d")), f"{TURN}.value: expected text in whole characters, got half a one "),
    (
        talk(("human", "a"), ("boss", "b")),
        f"{TURN}.from: expected one of human, user, gpt, assistant, chatgpt, bing, bard, function_call, system, tool, "
        "function_response, observation, got 'boss'.",
    ),
    (talk(("human", "a"), (None, "b")), f"{TURN}.from: expected one of human, "),  # type: ignore[arg-type]
    ({"conversations": [{"from": "human", "value": "a"}, "b"]}, f"{TURN}: expected a turn with from and value, got a "),
    ({"conversations": {"from": "human"}}, "field conversations: expected a list of turns, got an object."),
    ({"id": "b"}, "field conversations: expected a list of turns, got null."),
    (talk(id=["b"]), "field id: expected a text of at least one character or an integer, got a list."),
    (talk(id=""), "field id: expected a text of at least one character or an integer, got a text."),
    (talk(system=3), "field system: expected a text, got a number."),
    (talk(images=["a.png"]), "field images: expected a conversation of texts alone, got one with images, which is no "),
    (
        talk(id="a"),
        "field id: expected an id that no other conversation has, got 'a', which conversation 1 has already.",
    ),
]


@pytest.mark.parametrize("style", ["lines", "one line"])
@pytest.mark.parametrize(("row", "sentence"), WRONG)
def test_a_wrong_field_is_named_with_its_conversation(tmp_path: Path, row: Any, sentence: str, style: str) -> None:
    line = 2 if style == "lines" else 1
    assert refusal(tmp_path, TWO_TURNS, row, style=style).startswith(
        f"talks.json, line {line}, conversation 2, {sentence}"
    )


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("[1]", ": expected one JSON object, got another JSON value."),
        (
            '{"conversations": [',
            ": expected one JSON object, got text that is not JSON (Expecting value at column 20); ",
        ),
        ("[" * 100_000, ": expected one JSON object of sensible size and depth."),
    ],
)
def test_a_line_that_is_no_conversation_is_told_so(tmp_path: Path, row: str, sentence: str) -> None:
    assert refusal(tmp_path, TWO_TURNS, row).startswith(f"talks.json, line 2, conversation 2{sentence}")


def test_an_array_that_was_cut_off_is_told_so(tmp_path: Path) -> None:
    path = written(tmp_path, TWO_TURNS, TWO_TURNS | {"id": "b"}, style="indented")
    path.write_text(path.read_text()[:-30])
    with pytest.raises(
        ConfigurationError, match="line 23: expected the array's entry 2, which begins here, to end, got "
    ):
        import_trace(path)


def test_images_are_dropped_and_counted_when_told_so(tmp_path: Path) -> None:
    trace = imported(tmp_path, TWO_TURNS | {"image": "a.png"}, other_parts="drop")
    assert len(trace.records) == 2
    assert counts(trace)["dropped_parts"] == {"image": 1}


def test_personal_data_is_redacted_unless_told_otherwise(tmp_path: Path) -> None:
    row = talk(("human", "I am a@x.org"), ("gpt", "hello"))
    assert imported(tmp_path, row).records[0].messages == (Message("user", "I am [EMAIL_1]"),)
    assert imported(tmp_path, row, redact=False).records[0].messages == (Message("user", "I am a@x.org"),)


def test_other_arrays_are_still_refused(tmp_path: Path) -> None:
    sentence = (
        "talks.json, line 1: expected one JSON object a line, got a JSON array; write each of its entries on a line "
    )
    for rows in ([{"messages": []}], [1], ["a"], [[]], [{"id": "a", "offset": 0, "prompt": "x", "max_tokens": 3}]):
        assert refusal(tmp_path, *rows, style="one line").startswith(sentence)
    assert refusal(tmp_path, TWO_TURNS, style="one line", format_name="openai-log").startswith(sentence)
    assert refusal(tmp_path, style="one line") == "talks.json: the trace is empty; expected at least one request."


def test_an_array_is_not_held_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "talks.json"
    with path.open("w") as file:
        file.write("[")
        for number in range(6000):
            # What is left out is given up: only the first question's text is replayed.
            turns = [("human", "hi"), ("gpt", "ho"), ("human", ""), ("gpt", "x" * 5000)]
            file.write(("," if number else "") + json.dumps(talk(*turns, id=number)))
        file.write("]")
    assert path.stat().st_size > 30_000_000
    tracemalloc.start()
    trace = import_trace(path, ImportSettings(redact=False))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(trace.records) == 6000
    assert most < 15_000_000
