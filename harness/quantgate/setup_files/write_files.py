"""Writes several files, or none: an existing file is only replaced where that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from quantgate.store.atomic_file import write_atomically, write_error
from quantgate_engine.errors import ConfigurationError


def write_files(texts: Mapping[Path, str], *, force: bool) -> None:
    """Raises ConfigurationError before anything is written where a file exists and `force` is not set, and RunError
    where the system refuses.
    """
    there = [path for path in texts if path.exists()]
    folders = [path for path in there if path.is_dir()]
    if folders:
        raise ConfigurationError(f"{folders[0]} is a folder; expected the name of a file to write.")
    if there and not force:
        names = ", ".join(map(str, there))
        one = len(there) == 1
        raise ConfigurationError(
            f"{names}: {'exists' if one else 'exist'} already; write elsewhere, or replace {'it' if one else 'them'} "
            "with --force."
        )
    for path, text in texts.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_error(path.parent, error) from error
        write_atomically(path, _writer(text))


def _writer(text: str) -> Callable[[Path], int]:
    return lambda path: path.write_text(text, encoding="utf-8")
