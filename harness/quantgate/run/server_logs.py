"""What launched servers wrote, kept beside the results."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from quantgate.store.run_folder import RunFolder


@contextmanager
def server_logs_kept(logs: Path, folder: RunFolder) -> Iterator[None]:
    """Copies the logs into the run's folder when the block is left, however it is left.

    A server may log the prompts that it is given, so a run without text keeps no logs.
    """
    try:
        yield
    finally:
        if folder.keep_text:
            for log in sorted(logs.iterdir()):
                _copy_if_possible(log, folder.path / log.name)


def _copy_if_possible(log: Path, to: Path) -> None:
    """A log that does not fit on the disk costs no run."""
    try:
        shutil.copyfile(log, to)
    except OSError:
        with suppress(OSError):
            to.unlink()
