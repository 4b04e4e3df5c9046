"""The entries of a file that is one JSON array, one by one, however its lines are broken; it is never held whole."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from quantgate.traces.source_line import SourceLine
from quantgate.traces.source_text import BYTE_ORDER_MARK, opened
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.shown import shown

_CHUNK_BYTES = 1 << 20

LONGEST_ENTRY = 16_000_000
"""Characters; as for a row of a file of lines, far above any conversation that a model reads."""

# This near to the end of what has been read so far, a number, a literal or an escape may have been cut in two.
_CUT_CHARACTERS = 16

_BLANKS = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def starts_with_array(path: Path) -> bool:
    """Whether the first character that is no blank is a `[`. Raises ConfigurationError for what cannot be read."""
    with opened(path) as file:
        text = file.read(_CHUNK_BYTES).removeprefix(BYTE_ORDER_MARK).lstrip()
        while not text and (chunk := file.read(_CHUNK_BYTES)):
            text = chunk.lstrip()
        return text.startswith(b"[")


def read_array(path: Path) -> Iterator[SourceLine]:
    """The text of each entry, with the number of the line on which it starts.

    Raises ConfigurationError, naming line or byte, for what is no JSON, an array that ends too soon, anything behind
    it, an entry above `LONGEST_ENTRY`, and bytes that are not UTF-8.
    """
    with opened(path) as file:
        text = _Text(file, str(path))
        text.take("[")
        entries = 0
        more = text.next_character() != "]"
        while more:
            yield text.take_value(entries + 1)
            entries += 1
            separator = text.next_character()
            if separator not in {",", "]"}:
                raise text.error(f"a comma or the array's end behind its entry {entries}")
            more = separator == ","
            if more:
                text.take(",")
        text.take("]")
        if text.next_character():
            raise text.error("nothing behind the array's end")


class _Text:
    """The file's text from a place that moves on; what lies behind it is given up."""

    def __init__(self, file: BufferedReader, source: str) -> None:
        self._file = file
        self._source = source
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._bytes_read = 0
        self._text = ""
        self._at = 0
        self._ended = False
        self._line = 1
        self._column = 1

    def next_character(self) -> str:
        """The next character that is no blank, which stays there; "" at the end of the file."""
        while True:
            self._move_to(_end_of_blanks(self._text, self._at))
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._read_on()

    def take(self, character: str) -> None:
        """Moves behind the character, which the caller knows to be the next one."""
        self.next_character()
        self._move_to(self._at + len(character))

    def take_value(self, entry: int) -> SourceLine:
        """Moves behind the next JSON value, which is that entry of the array, from 1."""
        if self.next_character() in {"", "]"}:
            raise self.error(f"entry {entry} of the array")
        while True:
            try:
                _, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if not self._may_go_on(error):
                    raise self._malformed(error, entry) from None
            except (ValueError, RecursionError):
                raise ConfigurationError(
                    f"{self._source}, line {self._line}: expected an array's entry of sensible size and depth."
                ) from None
            else:
                if end + _CUT_CHARACTERS < len(self._text) or self._ended:
                    taken = SourceLine(self._line, self._text[self._at : end])
                    self._move_to(end)
                    return taken
            if len(self._text) - self._at > LONGEST_ENTRY:
                raise ConfigurationError(
                    f"{self._source}, line {self._line}: expected entries of at most {LONGEST_ENTRY // 1_000_000} "
                    f"million characters, got a longer one (entry {entry}); shorten or remove it."
                )
            self._read_on()

    def error(self, expected: str) -> ConfigurationError:
        """What to raise where the next character, or the file's end, is not what was expected."""
        found = self.next_character()
        got = shown(found) if found else "the end of the file, which has been cut off"
        return ConfigurationError(
            f"{self._source}, line {self._line}, column {self._column}: expected {expected}, got {got}."
        )

    def _may_go_on(self, error: json.JSONDecodeError) -> bool:
        """Whether the value may only have been cut by the end of what has been read so far."""
        cut = error.msg.startswith("Unterminated string") or error.pos >= len(self._text) - _CUT_CHARACTERS
        return cut and not self._ended

    def _malformed(self, error: json.JSONDecodeError, entry: int) -> ConfigurationError:
        if error.pos >= len(self._text) or error.msg.startswith("Unterminated string"):
            return ConfigurationError(
                f"{self._source}, line {self._line}: expected the array's entry {entry}, which begins here, to end, "
                "got the end of the file, which has been cut off."
            )
        self._move_to(error.pos)
        return ConfigurationError(
            f"{self._source}, line {self._line}, column {self._column}: expected JSON, got text that is not "
            f"({error.msg}) in the array's entry {entry}; mend or remove the entry."
        )

    def _read_on(self) -> None:
        """Reads as much again as is held, at least a chunk, so that a long entry is not parsed again for each chunk."""
        held = self._text[self._at :]
        chunk = self._file.read(max(_CHUNK_BYTES, len(held)))
        self._bytes_read += len(chunk)
        if self._bytes_read == len(chunk):
            chunk = chunk.removeprefix(BYTE_ORDER_MARK)
        self._ended = not chunk
        try:
            self._text, self._at = held + self._decode(chunk, self._ended), 0
        except UnicodeDecodeError as error:
            place = self._bytes_read - len(error.object) + error.start
            raise ConfigurationError(
                f"{self._source}, byte {place + 1} of the file: expected UTF-8 text, got the byte "
                f"0x{error.object[error.start]:02x}; save the file as UTF-8."
            ) from None

    def _move_to(self, place: int) -> None:
        lines = self._text.count("\n", self._at, place)
        start = self._text.rfind("\n", self._at, place) + 1 if lines else self._at
        self._line += lines
        self._column = place - start + (1 if lines else self._column)
        self._at = place


def _end_of_blanks(text: str, start: int) -> int:
    found = _BLANKS.match(text, start)
    return found.end() if found else start
