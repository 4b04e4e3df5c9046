"""`quantgate.json`: what a folder of the cache is, where it came from, and the hashes of its files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from quantgate_engine.errors import ModelError
from quantgate_engine.model.checkpoint_check import check_folder, read_json_object, tokenizer_files, weight_files
from quantgate_engine.model.hashing import FileStamp, combined_sha256
from quantgate_engine.model.model_folder import ModelFolder
from quantgate_engine.shown import on_one_line, shown

RECORD_FILE = "quantgate.json"
RECORD_SCHEMA = "quantgate.model/1"
_CONFIG_FILES = ("config.json", "generation_config.json", "quantize_config.json")


def describe_folder(folder: Path, name: str, provenance: dict[str, Any], stamps: dict[str, FileStamp]) -> ModelFolder:
    """`stamps` are those of the weight and tokenizer files, by file name."""
    hashes = {file_name: stamp.sha256 for file_name, stamp in stamps.items()}
    return ModelFolder(
        path=folder,
        name=name,
        weights_sha256=combined_sha256({path.name: hashes[path.name] for path in weight_files(folder)}),
        tokenizer_sha256=combined_sha256({path.name: hashes[path.name] for path in tokenizer_files(folder)}),
        provenance=provenance,
    )


def write_record(folder: Path, name: str, provenance: dict[str, Any]) -> None:
    """Hashes the folder's weight, tokenizer and configuration files and writes their record beside them."""
    files = (*weight_files(folder), *tokenizer_files(folder), *_config_files(folder))
    _write(folder, name, provenance, {path.name: FileStamp.of(path) for path in files})


def has_record(folder: Path) -> bool:
    return (folder / RECORD_FILE).is_file()


def read_record(folder: Path) -> ModelFolder:
    """The recorded folder; a file whose size or time changed is hashed again, and must be what it was."""
    check_folder(folder)
    record_path = folder / RECORD_FILE
    record = read_json_object(record_path, "quantgate writes it beside the models that it converts")
    if record.get("schema") != RECORD_SCHEMA:
        raise ModelError(
            f"{record_path}, field schema: {RECORD_SCHEMA!r} was expected, found {shown(record.get('schema'))}; "
            f"{_remedy(folder)}."
        )
    try:
        name, provenance = str(record["name"]), dict(record["provenance"])
        recorded = {file_name: FileStamp(**stamp) for file_name, stamp in record["files"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"{record_path}: the record is damaged; {_remedy(folder)}.") from error
    present = {path.name for path in (*weight_files(folder), *tokenizer_files(folder))}
    if not recorded.keys().isdisjoint(_CONFIG_FILES):
        # Records of the first versions tell nothing of these.
        present |= {path.name for path in _config_files(folder)}
    if present != set(recorded):
        changed = on_one_line(", ".join(sorted(present ^ set(recorded))), 200)
        raise ModelError(f"{folder}: files were added or removed ({changed}); {_remedy(folder, provenance)}.")
    stamps = {file_name: _checked(folder / file_name, stamp, provenance) for file_name, stamp in recorded.items()}
    if stamps != recorded:
        # Archives that restore a cache round the times of its files; the next start need not hash them again.
        with suppress(OSError):
            _write(folder, name, provenance, stamps)
    return describe_folder(folder, name, provenance, stamps)


def _config_files(folder: Path) -> list[Path]:
    return [folder / name for name in _CONFIG_FILES if (folder / name).is_file()]


def _remedy(folder: Path, provenance: Mapping[str, Any] | None = None) -> str:
    """provenance: None where it cannot be read."""
    if provenance is None:
        return f"remove {folder}, and fetch or quantize the model again"
    made = "quantize" if provenance.get("source") == "quantized" else "fetch"
    return f"remove {folder} and {made} the model again"


def _checked(path: Path, recorded: FileStamp, provenance: Mapping[str, Any]) -> FileStamp:
    if recorded.still_fits(path):
        return recorded
    stamp = FileStamp.of(path)
    if stamp.sha256 != recorded.sha256:
        raise ModelError(
            f"{path}: the file is not the one that was stored (SHA-256 {stamp.sha256[:12]}..., "
            f"recorded {recorded.sha256[:12]}...); {_remedy(path.parent, provenance)}."
        )
    return replace(recorded, size=stamp.size, mtime_ns=stamp.mtime_ns)


def _write(folder: Path, name: str, provenance: dict[str, Any], stamps: dict[str, FileStamp]) -> None:
    record = {
        "schema": RECORD_SCHEMA,
        "name": name,
        "provenance": provenance,
        "files": {file_name: stamp.to_json() for file_name, stamp in sorted(stamps.items())},
    }
    partial = folder / f".{RECORD_FILE}.{os.getpid()}"
    partial.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    partial.replace(folder / RECORD_FILE)
