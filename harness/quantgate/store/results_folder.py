"""The folder that runs are made in."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp

from quantgate.store.atomic_file import write_error
from quantgate_engine.errors import RunError


def check_writable(results: Path) -> None:
    """Raises RunError where no run's folder could be made under `results`, which need not exist; leaves nothing."""
    try:
        there = next(folder for folder in (results, *results.absolute().parents) if folder.exists())
        if not there.is_dir():
            raise not_a_folder(there)
        Path(mkdtemp(prefix=".quantgate-", dir=there)).rmdir()
    except OSError as error:
        raise write_error(results, error) from error


def not_a_folder(results: Path) -> RunError:
    return RunError(f"Cannot write results under {results}: it is not a folder; choose another one.")
