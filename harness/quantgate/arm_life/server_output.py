"""What a server prints: kept in a file beside the results, or only for as long as it runs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from quantgate.store.atomic_file import write_error

_QUOTED_LINES = 10
_QUOTED_BYTES = 4096
_QUOTED_CHARACTERS = 1000


class ServerOutput:
    """The file that a server's standard output and error go to; a server started again appends to it.

    path: None where the run keeps no text, because servers may log prompts; then a nameless temporary file takes it.
    Raises RunError where the file cannot be written.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        try:
            self.file = _open(path)
        except OSError as error:
            raise write_error(path or Path(tempfile.gettempdir()), error) from error
        self._start = os.fstat(self.file.fileno()).st_size

    def last_lines(self, secrets: Iterable[str] = ()) -> str:
        """The last lines since the server was started, in one line that is fit for a terminal; may be empty."""
        size = os.fstat(self.file.fileno()).st_size
        start = max(self._start, size - _QUOTED_BYTES)
        text = os.pread(self.file.fileno(), size - start, start).decode("utf-8", errors="replace")
        for secret in secrets:
            text = text.replace(secret, "(hidden)")
        lines = [line for line in map(_plain, text.splitlines()) if line]
        return " | ".join(lines[-_QUOTED_LINES:])[-_QUOTED_CHARACTERS:]

    def close(self) -> None:
        self.file.close()


def _open(path: Path | None) -> IO[bytes]:
    """Open until the process ends. Unbuffered and never sought: the server writes through the same open file."""
    if path is None:
        return tempfile.TemporaryFile(buffering=0)
    return path.open("a+b", buffering=0)


def _plain(line: str) -> str:
    """Without control characters: a server's colours and cursor movements are not for our terminal."""
    return " ".join("".join(character if character.isprintable() else " " for character in line).split())
