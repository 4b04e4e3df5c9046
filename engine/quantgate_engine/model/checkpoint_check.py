"""What a Hugging Face folder must hold, and must not ask for, before anything of it is read as a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from quantgate_engine.errors import ModelError
from quantgate_engine.shown import on_one_line, shown

PICKLED_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "merges.txt",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
)
SINGLE_WEIGHTS_FILE = "model.safetensors"
LONGEST_FILE_NAME = 255
WEIGHTS_INDEX_FILE = "model.safetensors.index.json"


def check_folder(folder: Path) -> None:
    """Raises ModelError where the folder is incomplete, pickled or asks for code of its own to be run."""
    config = read_json_object(folder / "config.json", "a model folder needs one that names its architecture")
    if "auto_map" in config:
        raise ModelError(
            f"{folder / 'config.json'}, field auto_map: this model asks to run Python code of its own, which quantgate "
            "never does; use a model whose architecture transformers knows."
        )
    weight_files(folder)
    if not any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer.model", "vocab.json")):
        raise ModelError(
            f"{folder}: there is no tokenizer (tokenizer.json, tokenizer.model or vocab.json); "
            "copy the tokenizer's files into the folder."
        )


def weight_files(folder: Path) -> list[Path]:
    """The folder's safetensors files, one or the index's shards, all of them there."""
    single = folder / SINGLE_WEIGHTS_FILE
    if is_there(single):
        return [single]
    weight_map = indexed_files(folder)
    if weight_map is not None:
        return [folder / name for name in sorted(set(weight_map.values()))]
    pickled = sorted(path.name for path in folder.iterdir() if path.suffix in PICKLED_SUFFIXES)
    if pickled:
        raise ModelError(pickled_weights_message(folder, pickled[0]))
    raise ModelError(f"{folder}: there are no weights ({SINGLE_WEIGHTS_FILE} or {WEIGHTS_INDEX_FILE} was expected).")


def indexed_files(folder: Path) -> dict[str, str] | None:
    """From each tensor's name to the name of its shard, as the index says; None where the folder has no index.

    Raises ModelError where a shard is not there, or would lie elsewhere.
    """
    index_path = folder / WEIGHTS_INDEX_FILE
    if not is_there(index_path):
        return None
    weight_map = read_json_object(index_path, "it maps each tensor to its file").get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise ModelError(f"{index_path}, field weight_map: a map from tensor to file was expected.")
    names = {str(name): name for name in weight_map.values()}
    for _, name in sorted(names.items(), key=lambda pair: pair[0]):
        # A name from a file never leaves its folder.
        if not (isinstance(name, str) and _is_shard_name(name)):
            raise ModelError(
                f"{index_path}, field weight_map: {shown(name)} is not the name of a safetensors file here."
            )
        if not is_there(folder / name):
            raise ModelError(
                f"{folder / name}: the file is missing, though {WEIGHTS_INDEX_FILE} names it; fetch the model again."
            )
    return weight_map


def _is_shard_name(name: str) -> bool:
    return name.endswith(".safetensors") and name.isprintable() and "/" not in name and len(name) <= LONGEST_FILE_NAME


def is_there(path: Path) -> bool:
    """Raises ModelError where something is there and no file: a folder, or a link to nowhere."""
    try:
        if path.is_file():
            return True
        if path.exists() or path.is_symlink():
            raise ModelError(
                f"{path}: a file was expected, and this is a folder or a link to no file; fetch the model again."
            )
    except OSError as error:
        raise unreadable(path, error) from error
    return False


def unreadable(path: Path, error: OSError) -> ModelError:
    return ModelError(
        f"{path}: the file cannot be read ({error.strerror or 'the system gives no reason'}); check the path and its "
        "permissions."
    )


def tokenizer_files(folder: Path) -> list[Path]:
    return [folder / name for name in TOKENIZER_FILES if (folder / name).is_file()]


def pickled_weights_message(place: Path, name: str) -> str:
    return (
        f"{place}: the weights are pickled ({name}), a format that can run code when it is read and that quantgate "
        "never opens; convert them to safetensors or GGUF first."
    )


def read_json_object(path: Path, expected: str) -> dict[str, Any]:
    if not is_there(path):
        raise ModelError(f"{path}: the file is missing; {expected}.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise unreadable(path, error) from error
    except RecursionError as error:
        raise ModelError(f"{path}: objects or lists stand in each other too deep to be read; {expected}.") from error
    # Not JSON, not UTF-8, or an integer of more digits than Python reads.
    except ValueError as error:
        raise ModelError(f"{path}: this is not JSON ({on_one_line(str(error), 200)}); {expected}.") from error
    if not isinstance(content, dict):
        raise ModelError(f"{path}: a JSON object was expected, found {type(content).__name__}; {expected}.")
    return content
