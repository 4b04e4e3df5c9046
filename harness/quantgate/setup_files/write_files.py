"""Writes several files, or none: an existing file is only replaced where that was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from quantgate.store.atomic_file import require_replaceable, write_error, write_text_atomically
from quantgate_engine.errors import ConfigurationError


def write_files(texts: Mapping[Path, str], *, force: bool) -> None:
    """Raises ConfigurationError before anything is written where a file exists and `force` is not set, and RunError
    where the system refuses.
    """
    for path in texts:
        require_replaceable(path)
    there = [path for path in texts if path.exists()]
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
        write_text_atomically(path, text)
