"""A tokenizer by itself, for models that another server runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from quantgate_engine.errors import ModelError
from quantgate_engine.model.catalog import resolve_model
from quantgate_engine.model.known_models import KNOWN_MODELS
from quantgate_kernels.cache_root import with_home

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

NO_LENGTH_LIMIT = 10**30
"""Given as a tokenizer's own limit, it keeps it from warning of long texts: the engine and the plan check lengths."""


def load_tokenizer(name_or_path: str) -> PreTrainedTokenizerFast:
    """The tokenizer of a known model, of a folder (its tokenizer files are enough) or of a Hub id.

    Raises ModelError where there is none that can be read.
    """
    from transformers import AutoTokenizer

    path = with_home(name_or_path)
    is_known = name_or_path.lower() in KNOWN_MODELS or path.suffix == ".gguf"
    source = resolve_model(name_or_path).path if is_known else path if path.is_dir() else name_or_path
    try:
        return AutoTokenizer.from_pretrained(
            source,
            local_files_only=isinstance(source, Path),
            trust_remote_code=False,
            model_max_length=NO_LENGTH_LIMIT,
        )
    except (OSError, ValueError, ImportError) as error:
        raise ModelError(
            f"{name_or_path}: no tokenizer can be read from it ({str(error).splitlines()[0]}); expected one of "
            f"{', '.join(KNOWN_MODELS)}, a folder with tokenizer.json, a GGUF file, or a Hub id such as owner/name."
        ) from error
