"""How an answer over HTTP comes to its end: whole, broken off, given up, or without a single token."""

from __future__ import annotations

import pytest
from tests.replay.plans import MS
from tests.targets.wire import URL, asked, by_prompt, replay, stream

from quantgate.targets.openai.wire_script import DONE, WireAnswer, completion, usage
from quantgate.targets.transfer import ErrorKind


@pytest.mark.parametrize(
    "parts",
    [
        (completion("a", finish_reason="length"),),
        (completion("a"), DONE),
        (completion("a", finish_reason="length"), DONE),
    ],
)
@pytest.mark.parametrize("cut", [False, True])
def test_an_answer_is_whole_with_a_finish_reason_or_done_however_its_connection_ends(
    parts: tuple[bytes, ...], cut: bool
) -> None:
    seen = replay(stream(*parts, cut=cut), asked("a", output_tokens=1)).seen["a"]
    assert seen.end.status == "finished"


@pytest.mark.parametrize(("asked_for", "status"), [(1, "finished"), (2, "failed")])
def test_a_broken_connection_is_not_excused_by_a_limit_that_was_not_reached(asked_for: int, status: str) -> None:
    answer = stream(completion("a", finish_reason="length"), cut=True)
    seen = replay(answer, asked("a", output_tokens=asked_for)).seen["a"]
    assert seen.transfer is not None
    assert (seen.end.status, seen.transfer.error_kind) == (status, None if status == "finished" else "early_close")


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_silence_after_the_reason_for_the_end_is_the_end(reason: str) -> None:
    """One second of it; the connection is closed then."""
    parts = ((10 * MS, completion("a", finish_reason=reason)), (60_000 * MS, b""))
    replayed = replay(WireAnswer(parts), asked("a"))
    seen = replayed.seen["a"]
    assert (seen.end.status, seen.token_times_ns, seen.ended_ns) == ("finished", [10 * MS], 1010 * MS)
    assert replayed.transport is not None
    assert replayed.transport.disconnects == [1010 * MS]


def test_a_usage_that_comes_late_is_waited_for() -> None:
    parts = ((10 * MS, completion("ab", finish_reason="length")), (900 * MS, usage(4, 2)), (900 * MS, DONE))
    seen = replay(WireAnswer(parts), asked("a")).seen["a"]
    assert (len(seen.token_times_ns), seen.ended_ns) == (2, 1810 * MS)


def test_keep_alives_after_the_end_are_not_waited_for() -> None:
    keep_alives = ((400 * MS, b": still here\n\n"),) * 9
    seen = replay(WireAnswer(((10 * MS, completion("ab", finish_reason="length")), *keep_alives)), asked("a")).seen["a"]
    assert (seen.end.status, seen.ended_ns) == ("finished", 1010 * MS)


@pytest.mark.parametrize(
    "answer",
    [
        stream(DONE),
        stream(DONE, cut=True),
        stream(completion("", finish_reason="length"), DONE),
        stream(completion("", finish_reason="length")),
        stream(completion("", finish_reason="stop"), usage(4, 0), DONE),
        stream(completion("", finish_reason="stop"), cut=True),
        stream(usage(4, 3), DONE),
    ],
)
def test_an_answer_without_a_token_is_a_failure_of_its_own_kind(answer: WireAnswer) -> None:
    replayed = replay(answer, asked("a"))
    seen = replayed.seen["a"]
    assert seen.transfer is not None
    assert (seen.end.status, seen.transfer.error_kind, seen.transfer.http_status) == ("failed", "empty_answer", 200)
    assert seen.end.error == (
        f"{URL}/v1/completions: the answer came to its end without a token, though up to 3 were asked for; "
        "look at the server's log."
    )
    assert replayed.table.column("error_kind").to_pylist() == ["empty_answer"]


def test_an_end_token_alone_is_an_answer() -> None:
    seen = replay(stream(completion("", finish_reason="stop"), usage(4, 1), DONE), asked("a")).seen["a"]
    assert (seen.end.status, seen.token_times_ns) == ("finished", [10 * MS])


def test_a_count_that_no_table_could_hold_changes_nothing() -> None:
    parts = (completion("a"), completion("b", finish_reason="length"), usage(2**64, 10**8), DONE)
    replayed = replay(stream(*parts), asked("a", prompt_token_count=7))
    row = replayed.table.to_pylist()[0]
    assert (row["status"], row["prompt_tokens"], row["output_tokens"]) == ("finished", 7, 2)
    assert row["counted_by"] == "chunks"


def test_the_limit_of_an_extra_body_is_the_one_that_was_asked_for() -> None:
    parts = (completion("a"), completion("b", finish_reason="length"), usage(4, 6), DONE)
    body = {"max_tokens": None, "max_completion_tokens": 6}
    assert len(replay(stream(*parts), asked("a"), extra_body=body).seen["a"].token_times_ns) == 6
    assert len(replay(stream(*parts), asked("a")).seen["a"].token_times_ns) == 2


@pytest.mark.parametrize("word", ["abort", "Cancelled", "timeout", "not_finished"])
@pytest.mark.parametrize("cut", [False, True])
def test_a_word_that_gives_a_request_up_is_no_end(word: str, cut: bool) -> None:
    seen = replay(stream(completion("a", finish_reason=word), cut=cut), asked("a")).seen["a"]
    assert seen.transfer is not None
    assert (seen.end.status, seen.transfer.error_kind) == ("failed", "server_error")


def test_the_words_of_other_servers_for_an_end_are_ours() -> None:
    answers = {word: stream(completion("a", finish_reason=word), DONE) for word in ("eos_token", "length", "odd")}
    seen = replay(by_prompt(answers), *map(asked, answers)).seen
    assert [seen[word].end.finish_reason for word in answers] == ["stop", "length", "odd"]


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (
            stream(b' {"choices": [', b'{"text": "a"}]}'),
            "malformed_event",
            "no event stream but one whole JSON document;",
        ),
        (stream(b"<html>hello</html>"), "malformed_event", "no event stream but a web page;"),
        (stream(b'{"choices": [', cut=True), "early_close", "before its answer was whole"),
        (stream(b": keep-alive\n\n"), "early_close", "before its answer was whole"),
        (stream(), "early_close", "before its answer was whole"),
    ],
)
def test_an_answer_that_is_no_stream_is_told_from_a_stream_that_broke_off(
    answer: WireAnswer, kind: ErrorKind, said: str
) -> None:
    seen = replay(answer, asked("a")).seen["a"]
    assert seen.transfer is not None
    assert (seen.end.status, seen.transfer.error_kind, seen.token_times_ns) == ("failed", kind, [])
    assert said in str(seen.end.error)


def test_a_word_for_an_end_that_no_table_can_hold_is_cleaned() -> None:
    document = rb'{"choices": [{"index": 0, "text": "a", "finish_reason": "odd\ud83d\n"}]}'
    seen = replay(stream(b"data: " + document + b"\n\n", DONE), asked("a")).seen["a"]
    assert seen.end.finish_reason == "odd"
    long = replay(stream(completion("a", finish_reason="o" * 5000), DONE), asked("a")).seen["a"]
    assert long.end.finish_reason == "o" * 40
