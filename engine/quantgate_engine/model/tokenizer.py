"""A tokenizer by itself, for models that another server runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from quantgate_engine.errors import ModelError
from quantgate_engine.model.catalog import resolve_model
from quantgate_engine.model.hub_fetch import FILES_OF_A_TOKENIZER, fetch_from_hub, is_hub_id
from quantgate_engine.model.known_models import KNOWN_MODELS
from quantgate_engine.shown import on_one_line
from quantgate_kernels.cache_root import with_home

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

NO_LENGTH_LIMIT = 10**30
"""Given as a tokenizer's own limit, it keeps it from warning of long texts: the engine and the plan check lengths."""

_EXPECTED = (
    f"expected one of {', '.join(KNOWN_MODELS)}, a folder with tokenizer.json, a GGUF file, or a Hub id (owner/name)"
)


def load_tokenizer(name_or_path: str) -> PreTrainedTokenizerFast:
    """The tokenizer of a known model, of a folder (its tokenizer files are enough) or of a Hub id.

    Raises ModelError where there is none that can be read, RunError where the Hub cannot be reached.
    """
    folder = _folder_of(name_or_path)
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, model_max_length=NO_LENGTH_LIMIT
        )
    # transformers fails by whatever its code meets in a damaged file.
    except Exception as error:
        raise ModelError(
            f"{name_or_path}: no tokenizer can be read from it ({on_one_line(str(error), 200)}); {_EXPECTED}."
        ) from error


def _folder_of(name_or_path: str) -> Path:
    """Where the tokenizer's files lie.

    The Hub's own client fetches them: transformers asks for file after file, for most of a minute where there is no
    network.
    """
    path = with_home(name_or_path)
    if name_or_path.lower() in KNOWN_MODELS or path.suffix == ".gguf":
        return resolve_model(name_or_path).path
    if path.is_dir():
        return path
    if is_hub_id(name_or_path):
        return fetch_from_hub(name_or_path, FILES_OF_A_TOKENIZER)
    raise ModelError(f"{name_or_path}: there is no tokenizer of this name and no such folder; {_EXPECTED}.")
