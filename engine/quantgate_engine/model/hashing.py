"""SHA-256 of files, computed once per (size, modification time)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class FileStamp:
    """A file's hash, and the size (bytes) and modification time (ns) that it had when it was hashed."""

    size: int
    mtime_ns: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> FileStamp:
        # The file is looked at before it is read: a write in between leaves a stamp that no longer matches.
        status = path.stat()
        return cls(status.st_size, status.st_mtime_ns, file_sha256(path))

    def still_fits(self, path: Path) -> bool:
        status = path.stat()
        return (status.st_size, status.st_mtime_ns) == (self.size, self.mtime_ns)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def combined_sha256(sha256_by_name: Mapping[str, str]) -> str:
    """One hash for several files: of one file its own, of more the SHA-256 of the sorted lines `<name> <sha256>`."""
    if len(sha256_by_name) == 1:
        return next(iter(sha256_by_name.values()))
    return text_sha256(f"{name} {sha256_by_name[name]}\n" for name in sorted(sha256_by_name))


def text_sha256(parts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode())
    return digest.hexdigest()
