"""What launched servers wrote, kept beside the results."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
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
                shutil.copyfile(log, folder.path / log.name)
