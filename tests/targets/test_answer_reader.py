"""Streams of both APIs, read event by event."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantgate.targets.base import TokenEvent
from quantgate.targets.openai.answer_reader import AnswerReader, ServerReportedError
from quantgate.targets.openai.api.chat import CHAT
from quantgate.targets.openai.api.completions import COMPLETIONS
from quantgate.targets.openai.api.dialect import Dialect
from quantgate.targets.openai.piece import DEGRADED, MalformedEventError, Usage
from quantgate.targets.openai.wire_script import DONE, chat_delta, completion, event, usage


def read(dialect: Dialect, *packets: bytes) -> tuple[list[TokenEvent], AnswerReader]:
    reader = AnswerReader(dialect)
    events = [event for packet in packets for event in reader.feed(packet)]
    return events + list(reader.end()), reader


def texts(events: list[TokenEvent]) -> list[tuple[str | None, bool]]:
    return [(event.text, event.reasoning) for event in events]


def test_a_completion() -> None:
    events, reader = read(COMPLETIONS, completion("Hel"), completion("lo", finish_reason="length"), usage(5, 2), DONE)
    assert texts(events) == [("Hel", False), ("lo", False)]
    assert (reader.done, reader.finish_reason, reader.usage) == (True, "length", Usage(5, 2))
    assert reader.count(None) == ((1, 1), (), "usage")


def test_events_without_a_token_are_no_token_events() -> None:
    events, _ = read(
        CHAT,
        b": keep-alive\n\n",
        chat_delta(role="assistant", content=""),
        event({"choices": [], "prompt_filter_results": []}),
        chat_delta(content="Hi"),
        chat_delta(finish_reason="length"),
        usage(3, 1),
        DONE,
    )
    assert texts(events) == [("Hi", False)]


@pytest.mark.parametrize("degraded", ["max_tokens was cut\nfrom 9 to 1.", 3, None, ""])
def test_that_the_server_cut_the_request_is_kept_and_its_words_are_not(degraded: object) -> None:
    told = event({"choices": [{"index": 0, "text": "", "finish_reason": "length", "degraded": degraded}]})
    events, reader = read(COMPLETIONS, completion("Hi"), told, DONE)
    assert texts(events) == [("Hi", False)]
    assert reader.degraded == (DEGRADED if degraded and degraded != 3 else None)


def test_other_choices_are_ignored() -> None:
    second = {"choices": [{"index": 1, "text": "no"}, {"index": 0, "text": "yes"}]}
    events, _ = read(COMPLETIONS, event({"choices": [{"index": 1, "text": "no"}]}), event(second), DONE)
    assert texts(events) == [("yes", False)]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_apart_from_the_answer(field: str) -> None:
    events, reader = read(
        CHAT,
        chat_delta(**{field: "Hm"}),
        chat_delta(**{field: ", so", "content": "The"}),
        chat_delta(content=" answer", finish_reason="length"),
        usage(3, 3),
        DONE,
    )
    assert texts(events) == [("Hm", True), (", so", True), ("The", False), (" answer", False)]
    assert reader.count(None) == ((1, 1, 0, 1), (), "usage")


def test_tool_calls_count_as_text_that_came() -> None:
    call = [{"index": 0, "function": {"name": "find", "arguments": ""}}]
    rest = [{"index": 0, "function": {"arguments": '{"a": 1}'}}]
    events, reader = read(CHAT, chat_delta(tool_calls=call), chat_delta("tool_calls", tool_calls=rest), DONE)
    assert texts(events) == [("find", False), ('{"a": 1}', False)]
    assert reader.finish_reason == "tool_calls"


def test_the_event_that_ends_an_answer_is_no_token_where_only_the_usage_counts_it() -> None:
    events, reader = read(COMPLETIONS, completion("Hi"), completion("", finish_reason="stop"), usage(3, 2), DONE)
    assert texts(events) == [("Hi", False), ("", False)]
    assert reader.count(None) == ((1, 0), (), "usage")
    _, without = read(COMPLETIONS, completion("Hi"), completion("", finish_reason="stop"), usage(3, 1), DONE)
    assert without.count(None) == ((1, 0), (), "usage")


def test_a_token_without_text_of_its_own_is_an_event() -> None:
    """Half a character: the server shows nothing yet, but its token has come, and it may be the first."""
    events, reader = read(
        COMPLETIONS,
        completion("", token_ids=[240]),
        completion("🙂", token_ids=[159, 153], finish_reason="length"),
        usage(1, 3),
        DONE,
    )
    assert [(event.text, event.token_ids) for event in events] == [("", (240,)), ("🙂", (159, 153))]
    assert reader.count(None) == ((1, 2), (240, 159, 153), "ids")


def test_log_probs_count_tokens_in_both_apis() -> None:
    two = {"tokens": ["a", "b"], "token_logprobs": [-1.0, -2.0]}
    _, completed = read(COMPLETIONS, completion("ab", logprobs=two, finish_reason="length"), DONE)
    assert completed.count(None) == ((2,), (), "logprobs")
    content = {"logprobs": {"content": [{"token": "a", "logprob": -1.0}, {"token": "b", "logprob": -2.0}]}}
    _, chatted = read(CHAT, chat_delta("length", content, content="ab"), DONE)
    assert chatted.count(None) == ((2,), (), "logprobs")


def escaped(text: str) -> bytes:
    """As `completion`, with JSON escapes for every character that is not ASCII, halves of characters included."""
    return b"data: " + json.dumps({"choices": [{"index": 0, "text": text}]}).encode() + b"\n\n"


def test_halves_of_a_character_in_two_json_texts_are_joined() -> None:
    events, _ = read(COMPLETIONS, escaped("a\ud83d"), escaped("\ude42b"), DONE)
    assert [event.text for event in events] == ["a", "🙂b"]


def test_half_a_character_that_stays_alone_is_replaced() -> None:
    events, reader = read(COMPLETIONS, escaped("a\ud83d"), escaped("b\ude42"), escaped("\ud83d"), DONE)
    assert "".join(event.text or "" for event in events) == "a\ufffdb\ufffd\ufffd"
    assert [event.text for event in events] == ["a", "\ufffdb\ufffd", "", "\ufffd"]
    assert reader.count(None) == ((1, 1, 1, 0), (), "chunks")


@given(
    pieces=st.lists(st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=5), max_size=8),
    data=st.data(),
)
def test_any_split_of_the_bytes_gives_the_same_events(pieces: list[str], data: st.DataObject) -> None:
    stream = b"".join(completion(piece) for piece in pieces) + usage(1, len(pieces)) + DONE
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=12)))
    packets = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    events, reader = read(COMPLETIONS, *packets)
    assert [event.text for event in events] == pieces
    assert reader.done


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"error": {"message": "out of memory", "code": 500}}, "out of memory"),
        ({"error": "overloaded"}, "overloaded"),
        ({"object": "error", "message": "bad\nnews", "code": 400}, "bad news"),
        ({"error": {"code": 500}}, "no reason given"),
    ],
)
def test_an_error_inside_the_stream(document: object, said: str) -> None:
    reader = AnswerReader(COMPLETIONS)
    assert len(list(reader.feed(completion("a")))) == 1
    with pytest.raises(ServerReportedError, match=f"^{said}$"):
        list(reader.feed(event(document)))


def test_an_error_in_a_field_of_its_own() -> None:
    with pytest.raises(ServerReportedError, match=r"^the prompt is too long$"):
        read(COMPLETIONS, b'error: {"code": 400, "message": "the prompt is too long"}\n\n')


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"data: {\n\n", "it is no JSON"),
        (b"data: [1]\n\n", "it is no JSON object"),
        (event({"text": "a"}), "it has no choices"),
        (event({"choices": [1]}), "a choice is no object"),
        (event({"choices": [{"text": 1}]}), "text is no text"),
        (event({"choices": [{"text": "a", "token_ids": "x"}]}), "token_ids is no list of token ids"),
        (event({"choices": [{"text": "a", "token_ids": [2**70]}]}), "token_ids is no list of token ids"),
        (event({"choices": [{"text": "a", "token_ids": [-1]}]}), "token_ids is no list of token ids"),
        (event({"choices": [{"text": "a", "token_ids": [True]}]}), "token_ids is no list of token ids"),
        (b"data: " + b"[" * 100_000 + b"\n\n", "it is no JSON"),
    ],
)
def test_a_malformed_event_says_what_is_wrong(data: bytes, what: str) -> None:
    with pytest.raises(MalformedEventError, match=f"^{what}$"):
        read(COMPLETIONS, data, b"")


@pytest.mark.parametrize(
    ("told", "read_as"),
    [
        ("x", Usage()),
        ([], Usage()),
        ({"completion_tokens": -1, "prompt_tokens": 2**64}, Usage()),
        ({"completion_tokens": True, "prompt_tokens": 5}, Usage(5)),
        ({"completion_tokens": 2.0, "prompt_tokens": 5.5}, Usage(None, 2)),
        ({"prompt_tokens_details": {"cached_tokens": "many"}}, Usage()),
    ],
)
def test_what_cannot_be_read_of_a_usage_is_not_told(told: object, read_as: Usage) -> None:
    events, reader = read(COMPLETIONS, completion("a"), event({"choices": [], "usage": told}), DONE)
    assert (texts(events), reader.usage) == ([("a", False)], read_as)


def test_notes_behind_an_answer_are_no_part_of_it() -> None:
    notes = (event({"id": "x"}), event({"choices": None, "usage": {"completion_tokens": 1}}), event({"timings": {}}))
    events, reader = read(COMPLETIONS, completion("a"), *notes, DONE)
    assert (texts(events), reader.usage) == ([("a", False)], Usage(None, 1))


def test_one_function_call_of_older_servers_counts_as_text_that_came() -> None:
    call = {"name": "find", "arguments": "{}"}
    events, _ = read(CHAT, chat_delta("function_call", function_call=call), DONE)
    assert texts(events) == [("find{}", False)]


def test_a_delta_that_is_no_object_is_malformed() -> None:
    with pytest.raises(MalformedEventError, match="delta is no object"):
        read(CHAT, event({"choices": [{"delta": "a"}]}))


def test_half_an_event_at_the_end_is_an_early_close_and_no_malformed_event() -> None:
    events, reader = read(COMPLETIONS, completion("a"), completion("b")[:20])
    assert texts(events) == [("a", False)]
    assert not reader.is_whole


def test_a_last_event_without_its_blank_line_is_read() -> None:
    _, reader = read(COMPLETIONS, completion("a"), b"data: [DONE]")
    assert reader.done
    events, _ = read(COMPLETIONS, completion("a").rstrip(b"\n"))
    assert texts(events) == [("a", False)]


def test_nothing_after_the_end_is_read() -> None:
    events, _ = read(COMPLETIONS, completion("a") + DONE + completion("b"), b"data: {\n\n")
    assert texts(events) == [("a", False)]
