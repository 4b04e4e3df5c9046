"""Server-sent events from bytes that are split anywhere (WHATWG HTML, section 9.2, "Server-sent events")."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

# Far above any event that a generation server sends; a line without end must not fill the memory.
_LONGEST_LINE_BYTES = 64 << 20


class OversizedEventError(ValueError):
    """A line that is longer than any event of such a server."""


@dataclass(frozen=True, slots=True)
class SseEvent:
    """`kind` is the event's name, "message" where it has none; the lines of `data` are joined by line feeds."""

    data: str
    kind: str = "message"


class SseDecoder:
    """Lines end with LF, CR or CRLF; a CR at the end of the bytes ends its line at once, so that no event waits.

    Lines are decoded whole, so that no character is split. Comments and unknown fields are skipped, but for `error`,
    which is none of the standard's: llama.cpp's server puts an error there instead of into data.
    """

    def __init__(self) -> None:
        self._begun: list[bytes] = []
        self._begun_bytes = 0
        self._after_cr = False
        self._at_start = True
        self._data: list[str] = []
        self._kind = ""

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that these bytes complete, in order. Raises OversizedEventError."""
        if not data:
            return []
        if self._after_cr:
            data = data.removeprefix(b"\n")
        events: list[SseEvent] = []
        # bytes.splitlines knows exactly these three line ends; an unfinished line is kept in parts, so that a long one
        # is joined once and not at every packet.
        for line in data.splitlines(keepends=True):
            if not line.endswith((b"\n", b"\r")):
                self._keep(line)
                continue
            whole = b"".join((*self._begun, line)).rstrip(b"\r\n") if self._begun else line.rstrip(b"\r\n")
            self._begun.clear()
            self._begun_bytes = 0
            event = self._take_line(whole)
            if event is not None:
                events.append(event)
        self._after_cr = data.endswith(b"\r")
        return events

    def end(self) -> list[SseEvent]:
        """What stood unfinished when the bytes ended: some servers leave the last blank line out."""
        pending = b"".join(self._begun)
        self._begun.clear()
        last = [self._take_line(pending)] if pending else []
        last.append(self._dispatch())
        return [event for event in last if event is not None]

    def _keep(self, part: bytes) -> None:
        self._begun.append(part)
        self._begun_bytes += len(part)
        if self._begun_bytes > _LONGEST_LINE_BYTES:
            raise OversizedEventError(f"a line of more than {_LONGEST_LINE_BYTES >> 20} MiB")

    def _take_line(self, line: bytes) -> SseEvent | None:
        if self._at_start:
            line = line.removeprefix(codecs.BOM_UTF8)
            self._at_start = False
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        if field in (b"data", b"error"):
            self._data.append(value.removeprefix(b" ").decode("utf-8", errors="replace"))
            if field == b"error":
                self._kind = "error"
        elif field == b"event":
            self._kind = value.removeprefix(b" ").decode("utf-8", errors="replace")
        return None

    def _dispatch(self) -> SseEvent | None:
        event = SseEvent("\n".join(self._data), self._kind or "message") if self._data else None
        self._data.clear()
        self._kind = ""
        return event
