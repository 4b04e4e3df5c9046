"""What a Hugging Face folder must hold, and must not ask for, before anything of it is read as a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from quantgate_engine.errors import ModelError

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
    if single.is_file():
        return [single]
    if (folder / WEIGHTS_INDEX_FILE).is_file():
        return _shards(folder)
    pickled = sorted(path.name for path in folder.iterdir() if path.suffix in PICKLED_SUFFIXES)
    if pickled:
        raise ModelError(pickled_weights_message(folder, pickled[0]))
    raise ModelError(f"{folder}: there are no weights ({SINGLE_WEIGHTS_FILE} or {WEIGHTS_INDEX_FILE} was expected).")


def tokenizer_files(folder: Path) -> list[Path]:
    return [folder / name for name in TOKENIZER_FILES if (folder / name).is_file()]


def pickled_weights_message(place: Path, name: str) -> str:
    return (
        f"{place}: the weights are pickled ({name}), a format that can run code when it is read and that quantgate "
        "never opens; convert them to safetensors or GGUF first."
    )


def read_json_object(path: Path, expected: str) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelError(f"{path}: the file is missing; {expected}.") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ModelError(f"{path}: this is not JSON ({error}); {expected}.") from error
    if not isinstance(content, dict):
        raise ModelError(f"{path}: a JSON object was expected, found {type(content).__name__}; {expected}.")
    return content


def _shards(folder: Path) -> list[Path]:
    index_path = folder / WEIGHTS_INDEX_FILE
    weight_map = read_json_object(index_path, "it maps each tensor to its file").get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise ModelError(f"{index_path}, field weight_map: a map from tensor to file was expected.")
    names = sorted({str(name) for name in weight_map.values()})
    for name in names:
        # A name from a file never leaves its folder.
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise ModelError(f"{index_path}, field weight_map: {name!r} is not the name of a safetensors file here.")
        if not (folder / name).is_file():
            raise ModelError(f"{folder / name}: the file is missing, though {WEIGHTS_INDEX_FILE} names it.")
    return [folder / name for name in names]
