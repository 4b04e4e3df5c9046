"""Server-sent events, whatever the packets look like."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quantgate.targets.openai import sse
from quantgate.targets.openai.sse import OversizedEventError, SseDecoder, SseEvent


def decode(*packets: bytes) -> list[SseEvent]:
    decoder = SseDecoder()
    return [event for packet in packets for event in decoder.feed(packet)] + decoder.end()


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", ["a", "b"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]),
        (b"data: a\r\rdata: b\r\r", ["a", "b"]),
        (b"data:a\n\n", ["a"]),
        (b"data:  a \n\n", [" a "]),
        (b": keep-alive\n\ndata: a\n: in between\ndata: b\n\n", ["a\nb"]),
        (b"data\ndata: a\n\n", ["\na"]),
        (b"id: 7\nretry: 5\nunknown: x\ndata: a\n\n", ["a"]),
        (b"\n\n\ndata: a\n\n\n\n", ["a"]),
        (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
        (b"data: a: b\n\n", ["a: b"]),
        (b"data: a\n\ndata: unfinished\n", ["a", "unfinished"]),
        (b"data: a\n\ndata: cut", ["a", "cut"]),
        ("data: é漢🙂\n\n".encode(), ["é漢🙂"]),
        (b"data: \xff\n\n", ["\ufffd"]),
        (b"", []),
    ],
)
def test_events_of_a_stream(stream: bytes, expected: list[str]) -> None:
    assert [event.data for event in decode(stream)] == expected
    one_by_one = [bytes([byte]) for byte in stream]
    assert [event.data for event in decode(*one_by_one)] == expected


def test_an_event_may_have_a_name_of_its_own() -> None:
    assert decode(b"event: error\ndata: boom\n\ndata: next\n\n") == [
        SseEvent("boom", "error"),
        SseEvent("next", "message"),
    ]
    assert decode(b'error: {"message": "boom"}\n\n') == [SseEvent('{"message": "boom"}', "error")]


def test_an_event_is_given_as_soon_as_its_blank_line_has_come() -> None:
    """A blank line that is a lone CR must not wait for the LF that may follow it."""
    decoder = SseDecoder()
    assert decoder.feed(b"data: a\r\n\r") == [SseEvent("a")]
    assert decoder.feed(b"\ndata: b\n") == []
    assert decoder.feed(b"\n") == [SseEvent("b")]


LINES = st.text(st.characters(exclude_characters="\r\n", exclude_categories=("Cs",)), max_size=12)


@given(
    events=st.lists(st.lists(LINES, min_size=1, max_size=3), max_size=6),
    line_end=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    data=st.data(),
)
def test_where_packets_are_cut_changes_nothing(events: list[list[str]], line_end: bytes, data: st.DataObject) -> None:
    stream = b"".join(b"".join(b"data: " + line.encode() + line_end for line in lines) + line_end for lines in events)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=20)))
    packets = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert [event.data for event in decode(*packets)] == ["\n".join(lines) for lines in events]


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "_LONGEST_LINE_BYTES", 100)
    decoder = SseDecoder()
    decoder.feed(b"data: " + b"x" * 90)
    with pytest.raises(OversizedEventError):
        decoder.feed(b"x" * 20)
