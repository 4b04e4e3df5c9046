"""Files that are there whole or not at all: written beside, flushed to disk, renamed into place."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from quantgate_engine.errors import RunError

_CAUSES = {
    errno.ENOSPC: "the disk is full; free some space and run again",
    errno.EDQUOT: "the disk quota is used up; free some space and run again",
    errno.EACCES: "writing there is not allowed; choose a folder of your own",
    errno.EISDIR: "a folder of that name is in the way; move it away and run again",
    errno.ENOTDIR: "a part of that path is no folder; choose another one",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
    errno.EROFS: "the file system is read-only; choose another folder",
}


def write_error(path: Path, error: OSError) -> RunError:
    """The sentence for a write that failed."""
    other = f"{error.strerror or error}; check the path and the disk, and run again"
    return RunError(f"Cannot write {path}: {_CAUSES.get(error.errno or 0, other)}.")


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Lets `write` fill a temporary file in the same folder, then renames it to `path`.

    A crash at any moment leaves the previous file as it was. Raises RunError where the system refuses, with the
    temporary file removed.
    """
    temporary = path.with_name(f".{path.name}.partial")
    try:
        write(temporary)
        _flush(temporary)
        temporary.replace(path)
        _flush(path.parent)
    except OSError as error:
        raise write_error(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Forces a file, or a folder's entries, to the disk: a rename alone may survive a crash before the data does."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
