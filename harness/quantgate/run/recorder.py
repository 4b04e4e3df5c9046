"""Keeps `run.json` true while a run goes on, so that whatever ends it, the folder says how far it came."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from quantgate.store.manifest import RunManifest
from quantgate.store.run_folder import RunFolder


class RunRecorder:
    """Owns the manifest of one run; each change is written whole at once."""

    def __init__(self, folder: RunFolder, manifest: RunManifest, now_utc: Callable[[], datetime]) -> None:
        self.folder = folder
        self.manifest = manifest
        self._now_utc = now_utc
        folder.write_manifest(manifest)

    def update(self, **changes: Any) -> None:
        """Replaces fields of the manifest and writes it."""
        self.manifest = self.manifest.model_copy(update=changes)
        self.folder.write_manifest(self.manifest)

    def enter(self, phase: str) -> None:
        self.update(phase=phase)

    def complete(self) -> None:
        self.update(state="complete", finished_utc=self._timestamp())

    def interrupted(self) -> None:
        self.update(state="interrupted", finished_utc=self._timestamp(), failure="interrupted by the user")

    def failed(self, reason: str) -> None:
        self.update(state="failed", finished_utc=self._timestamp(), failure=reason)

    def _timestamp(self) -> str:
        return self._now_utc().isoformat(timespec="seconds")
