"""A Hugging Face folder of the user's own: read where it lies, never written to."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from quantgate_engine.model.checkpoint_check import check_folder, tokenizer_files, weight_files
from quantgate_engine.model.hashing import FileStamp, text_sha256
from quantgate_engine.model.model_folder import ModelFolder
from quantgate_engine.model.model_record import describe_folder


def open_user_folder(folder: Path, name: str, provenance: dict[str, Any], cache: Path) -> ModelFolder:
    """Hashes the files at the first look and remembers the hashes in the cache: large weights take seconds a time."""
    check_folder(folder)
    files = (*weight_files(folder), *tokenizer_files(folder))
    return describe_folder(folder, name, provenance, {path.name: _stamp(path, cache) for path in files})


def _stamp(path: Path, cache: Path) -> FileStamp:
    memo = cache / "hashes" / f"{text_sha256([str(path.resolve())])}.json"
    with suppress(OSError, ValueError, TypeError):
        remembered = FileStamp(**json.loads(memo.read_text(encoding="utf-8")))
        if remembered.still_fits(path):
            return remembered
    stamp = FileStamp.of(path)
    # A cache that cannot be written costs time at the next start, and no more.
    with suppress(OSError):
        memo.parent.mkdir(parents=True, exist_ok=True)
        partial = memo.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(stamp.to_json()), encoding="utf-8")
        partial.replace(memo)
    return stamp
