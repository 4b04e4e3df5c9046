"""Files that are there whole or not at all: written beside, flushed to disk, renamed into place."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from quantgate_engine.errors import ConfigurationError, RunError

_CAUSES = {
    errno.ENOSPC: "the disk is full; free some space and run again",
    errno.EDQUOT: "the disk quota is used up; free some space and run again",
    errno.EACCES: "writing there is not allowed; choose a folder of your own",
    errno.EPERM: "writing there is not allowed; choose a folder of your own",
    errno.EEXIST: "a file is in the way where a folder is needed; choose another path",
    errno.ENOENT: "there is no such folder; make it, or choose another one",
    errno.ENOTDIR: "a part of that path is no folder; choose another one",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
    errno.ELOOP: "the symbolic links there lead round in a circle; choose another path",
    errno.EROFS: "the file system is read-only; choose another folder",
}

_PRINTED_TO = (1, 2)
"""The descriptors of standard output and standard error."""


def write_error(path: Path, error: OSError) -> RunError:
    """The sentence for a write that failed."""
    other = f"{error.strerror or error}; check the path and the disk, and run again"
    return RunError(f"Cannot write {path}: {_CAUSES.get(error.errno or 0, other)}.")


def require_replaceable(path: Path) -> None:
    """Raises ConfigurationError where something other than a file stands at `path`: a rename would put a file in the
    place of the device or the pipe itself. So it does for a file that this process prints to (`/dev/stdout`), which
    would lose what is printed. Raises RunError where that cannot be looked at.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise write_error(path, error) from error
    if stat.S_ISDIR(status.st_mode):
        raise ConfigurationError(f"{path} is a folder where a file is to be written; move it or name another file.")
    if not stat.S_ISREG(status.st_mode):
        raise ConfigurationError(f"{path} is a device, a pipe or a socket; name a file to write.")
    if any(_is_open_as(descriptor, status) for descriptor in _PRINTED_TO):
        raise ConfigurationError(f"{path} is the file that this program prints to; name another one.")


def _is_open_as(descriptor: int, status: os.stat_result) -> bool:
    # A process may run without standard streams.
    with suppress(OSError):
        return os.path.samestat(os.fstat(descriptor), status)
    return False


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Lets `write` fill a temporary file in the same folder, then renames it to `path`.

    A crash at any moment leaves the previous file as it was. Of a symbolic link the target is written, and the link
    stays. Raises ConfigurationError where `path` is no file, RunError where the system refuses, with the temporary file
    removed.
    """
    require_replaceable(path)
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.partial")
    try:
        write(temporary)
        _flush(temporary)
        temporary.replace(target)
        _flush(target.parent)
    except OSError as error:
        raise write_error(path, error) from error
    finally:
        # A read-only file system refuses even the removal of what it does not hold.
        with suppress(OSError):
            temporary.unlink()


def write_text_atomically(path: Path, text: str) -> None:
    """`write_atomically` of a text, in UTF-8."""
    write_atomically(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def _flush(path: Path) -> None:
    """Forces a file, or a folder's entries, to the disk: a rename alone may survive a crash before the data does."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
