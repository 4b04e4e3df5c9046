"""A mark at the end of a compiled library by which it is known to be whole; loaders do not read so far."""

from __future__ import annotations

import hashlib
from pathlib import Path

_MARK = b"quantgate-sha256:"


def seal(library: Path) -> None:
    """Appends the mark: the hash of all bytes before it."""
    with library.open("r+b") as file:
        digest = hashlib.sha256(file.read()).digest()
        file.write(_MARK + digest)


def is_sealed(library: Path) -> bool:
    """Whether the file is there, ends with the mark, and holds what was marked."""
    try:
        written = library.read_bytes()
    except OSError:
        return False
    content, mark, digest = written[: -len(_MARK) - 32], written[-len(_MARK) - 32 : -32], written[-32:]
    return mark == _MARK and hashlib.sha256(content).digest() == digest
