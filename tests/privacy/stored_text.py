"""Looks through every file of a run's folder for pieces of given texts, inside Parquet tables as well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow.parquet as pq

PIECE = 12
"""Characters that no stored file may share with a prompt or an answer."""


def pieces_of(texts: Iterable[str]) -> set[str]:
    return {text[start : start + PIECE] for text in texts for start in range(len(text) - PIECE + 1)}


def contents(folder: Path) -> Iterator[tuple[str, str]]:
    """File name and text of every file; a table's cells and its column statistics beside its bytes."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.name, path.read_bytes().decode("utf-8", errors="replace")
            if path.suffix == ".parquet":
                yield path.name, "\n".join(map(repr, pq.read_table(path).to_pylist()))
                yield path.name, str(pq.read_metadata(path).to_dict())


def found_in(folder: Path, texts: Iterable[str]) -> list[tuple[str, str]]:
    """(file, piece) for every piece of a text that stands in a file."""
    pieces = pieces_of(texts)
    return [(name, piece) for name, content in contents(folder) for piece in pieces if piece in content]
