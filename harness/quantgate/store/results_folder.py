"""The folder that runs are made in."""

from __future__ import annotations

from pathlib import Path
from tempfile import mkdtemp

from quantgate.store.atomic_file import write_error
from quantgate_engine.errors import ConfigurationError


def check_writable(results: Path) -> None:
    """For `results` that need not exist yet; leaves nothing there.

    Raises ConfigurationError where a file is in the way, RunError where the system makes no run's folder.
    """
    try:
        there = next(folder for folder in (results, *results.absolute().parents) if folder.exists())
        if not there.is_dir():
            raise not_a_folder(there)
        Path(mkdtemp(prefix=".quantgate-", dir=there)).rmdir()
    except OSError as error:
        raise write_error(results, error) from error


def not_a_folder(results: Path) -> ConfigurationError:
    return ConfigurationError(f"Cannot write results under {results}: it is not a folder; choose another one.")
