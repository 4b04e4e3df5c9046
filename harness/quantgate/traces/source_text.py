"""A trace file's lines, decoded strictly and one by one, and its hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import BufferedReader, BytesIO
from pathlib import Path

from quantgate.traces.source_line import SourceLine
from quantgate_engine.errors import ConfigurationError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

LONGEST_ROW_BYTES = 16_000_000
"""Far above any prompt that a model reads; a longer row is damage, or a picture inside the text."""


def read_lines(path: Path) -> Iterator[SourceLine]:
    """The non-blank lines, numbered from 1; the file is never held whole.

    Raises ConfigurationError where there is no readable file, and for a row above `LONGEST_ROW_BYTES` or bytes that
    are not UTF-8, naming the line.
    """
    with opened(path) as file:
        yield from lines_from(file, path, 1)


def lines_from(file: BufferedReader | BytesIO, path: Path, first_number: int) -> Iterator[SourceLine]:
    """The non-blank lines of what is left of a file, or of a piece of it. Raises as `read_lines` does."""
    for number, line in enumerate(iter(partial(file.readline, LONGEST_ROW_BYTES + 1), b""), start=first_number):
        if len(line) > LONGEST_ROW_BYTES:
            raise ConfigurationError(
                f"{path}, line {number}: expected a row of at most {LONGEST_ROW_BYTES // 1_000_000} MB, got a "
                "longer one; shorten or remove the row."
            )
        raw = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
        try:
            text = raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise ConfigurationError(
                f"{path}, line {number}, byte {error.start + 1}: expected UTF-8 text, "
                f"got the byte 0x{raw[error.start]:02x}; save the file as UTF-8."
            ) from None
        if text.strip():
            yield SourceLine(number, text)


def trace_sha256(path: Path) -> str:
    """SHA-256 of the trace file's bytes, in hexadecimal. Raises ConfigurationError where it cannot be read."""
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def opened(path: Path) -> Iterator[BufferedReader]:
    """The file's bytes. Raises ConfigurationError where there is no readable file."""
    if path.exists() and not path.is_file():
        raise ConfigurationError(f"{path}: the trace cannot be read (it is no regular file); expected a file.")
    try:
        with path.open("rb") as file:
            yield file
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: there is no such trace file; check the path.") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: the trace cannot be read ({error.strerror}); expected a file.") from None
