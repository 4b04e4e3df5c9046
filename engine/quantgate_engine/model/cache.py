"""The cache on disk: how a folder appears in it whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from quantgate_engine.errors import ConfigurationError, RunError

_NOT_ALLOWED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.ENOTEMPTY})
_NOT_A_PLACE = frozenset({errno.ENOENT, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL})
"""A path under /proc, a loop of links, a name too long: no folder can be made there, whoever asks."""
_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class DiskWords:
    """What a refusal of the system's says besides. kept: what is there then. choose: how to take another place."""

    kept: str
    choose: str


IN_CACHE = DiskWords(kept="nothing was kept", choose="set QUANTGATE_CACHE to a folder")


@contextmanager
def locked(target: Path, waiting: Callable[[], None] | None = None, words: DiskWords = IN_CACHE) -> Iterator[None]:
    """Holds the lock of `target`: a second process waits here until the first is done with it.

    waiting: called again and again while another one holds it; what it raises ends the waiting.
    The lock is the kernel's, so that a killed process leaves none behind.
    """
    with disk_errors_explained(target, _NOT_A_PLACE, words):
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(target.parent / f".{target.name}.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if waiting is None:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        else:
            while not _has_locked(descriptor):
                waiting()
                time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


def _has_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def appearing_whole(target: Path, words: DiskWords = IN_CACHE) -> Iterator[Path]:
    """Yields an empty folder beside `target`; it becomes `target` by one rename when the block ends without error.

    Call it under `locked(target)`. Whatever ends the block early (an error, a full disk, Ctrl-C) leaves nothing; what
    a killed process left is swept here.
    """
    with disk_errors_explained(target, words=words):
        for leftover in target.parent.glob(f".{target.name}.*.partial"):
            shutil.rmtree(leftover, ignore_errors=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
        try:
            yield partial
            partial.chmod(0o755)
            partial.rename(target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def require_free_space(folder: Path, needed_bytes: int) -> None:
    """Refuses to start what cannot end, with the error that the full disk would give later."""
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise OSError(
            errno.ENOSPC, f"{needed_bytes / 1e6:.0f} MB are needed and {free / 1e6:.0f} MB are free", str(folder)
        )


@contextmanager
def disk_errors_explained(
    target: Path, further: frozenset[int] = frozenset(), words: DiskWords = IN_CACHE
) -> Iterator[None]:
    """Turns the operating system's refusals into the sentence that says what to do about them.

    further: errors that mean here, too, that `target` cannot be written.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise RunError(
                f"{target}: there is no room on the disk ({error.strerror}) and {words.kept}; "
                f"free some space or {words.choose} on another disk."
            ) from error
        if error.errno in _NOT_ALLOWED | further:
            raise ConfigurationError(
                f"{target}: cannot be written ({error.strerror}); {words.choose} that you may write to."
            ) from error
        raise
