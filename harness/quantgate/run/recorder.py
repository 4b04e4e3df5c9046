"""Keeps `run.json` true while a run goes on, so that whatever ends it, the folder says how far it came."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import datetime
from typing import Any

from quantgate.store.disk_reserve import DiskReserve
from quantgate.store.manifest import RunManifest
from quantgate.store.redaction import INTERRUPTED
from quantgate.store.run_folder import RunFolder, stored_rows


class RunRecorder:
    """Owns the manifest of one run; each change is written whole at once.

    It holds disk space in reserve for the manifest that tells how the run ended; `close` gives it back.
    """

    def __init__(self, folder: RunFolder, manifest: RunManifest, now_utc: Callable[[], datetime]) -> None:
        """Raises RunError, and leaves no folder, where not even the manifest can be written."""
        self.folder = folder
        self.manifest = manifest
        self._now_utc = now_utc
        try:
            self._reserve = DiskReserve(folder.path)
            folder.write_manifest(manifest)
        except BaseException:
            shutil.rmtree(folder.path, ignore_errors=True)
            raise

    def update(self, **changes: Any) -> None:
        """Replaces fields of the manifest and writes it."""
        self.manifest = self.manifest.model_copy(update=changes)
        self.folder.write_manifest(self.manifest)

    def enter(self, phase: str) -> None:
        self.update(phase=phase)

    def measured(self) -> None:
        """Everything was measured: from here on the run can be judged, whatever becomes of its own verdict."""
        rows = stored_rows(self.folder.path)
        self.update(state="complete", phase="judge", finished_utc=self._timestamp(), table_rows=rows)

    def interrupted(self) -> None:
        self._end(state="interrupted", finished_utc=self._timestamp(), failure=INTERRUPTED)

    def failed(self, reason: str) -> None:
        self._end(state="failed", finished_utc=self._timestamp(), failure=reason)

    def left_unjudged(self, reason: str) -> None:
        """The run stays complete; `failure` says why it has no verdict or no report of its own."""
        self._end(failure=reason)

    def close(self) -> None:
        self._reserve.release()

    def _end(self, **changes: Any) -> None:
        self.close()
        self.update(**changes)

    def _timestamp(self) -> str:
        return self._now_utc().isoformat(timespec="seconds")
