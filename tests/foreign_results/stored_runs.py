"""Writes a synthetic run to disk, as a finished run lies there."""

from __future__ import annotations

from pathlib import Path

from quantgate.store.run_folder import LoadedRun, RunFolder


def store(run: LoadedRun, folder: Path) -> Path:
    folder.mkdir()
    written = RunFolder(folder, run.manifest.run_id)
    written.write_manifest(run.manifest)
    for table in ("requests", "steps", "quality"):
        written.write_table(table, getattr(run, table))
    return folder
