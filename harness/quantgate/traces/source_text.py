"""A trace file's lines, decoded strictly, and its hash."""

from __future__ import annotations

import hashlib
from pathlib import Path

from quantgate.traces.registry import SourceLine
from quantgate_engine.errors import ConfigurationError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_bytes(path: Path) -> bytes:
    """The file's bytes. Raises ConfigurationError where there is no readable file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: there is no such trace file; check the path.") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: the trace cannot be read ({error.strerror}); expected a file.") from None


def trace_sha256(path: Path) -> str:
    """SHA-256 of the trace file's bytes, in hexadecimal. Raises ConfigurationError where it cannot be read."""
    return hashlib.sha256(read_bytes(path)).hexdigest()


def split_lines(content: bytes, source: str) -> list[SourceLine]:
    """The non-blank lines, numbered from 1. Raises ConfigurationError for bytes that are not UTF-8, naming the line."""
    lines = []
    for number, raw in enumerate(content.removeprefix(_BYTE_ORDER_MARK).split(b"\n"), start=1):
        try:
            text = raw.decode("utf-8").rstrip("\r")
        except UnicodeDecodeError as error:
            raise ConfigurationError(
                f"{source}, line {number}, byte {error.start + 1}: expected UTF-8 text, "
                f"got the byte 0x{raw[error.start]:02x}; save the file as UTF-8."
            ) from None
        if text.strip():
            lines.append(SourceLine(number, text))
    return lines
