"""Space that a run keeps for its last words, so that a full disk can be told in its folder too."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from quantgate.store.atomic_file import write_error

# Many times a manifest: writing one takes a second copy of it until the first is replaced.
_BYTES = 128 * 1024
_FILE = ".reserve"


class DiskReserve:
    """A file that only takes up space; `release` gives it back. Raises RunError where there is not even that much."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE
        try:
            with self._path.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, _BYTES)
        except OSError as error:
            self.release()
            raise write_error(folder, error) from error

    def release(self) -> None:
        # What cannot be removed is left: the error that brought the run here is the one to tell.
        with suppress(OSError):
            self._path.unlink()
