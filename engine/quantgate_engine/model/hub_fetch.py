"""A model of the Hugging Face Hub, by its own client and into its own cache."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from quantgate_engine.errors import ModelError, RunError
from quantgate_engine.model.checkpoint_check import TOKENIZER_FILES

# Nothing pickled and no Python file is ever asked for.
ALLOWED_FILES = ["config.json", "generation_config.json", "*.safetensors", "*.safetensors.index.json", *TOKENIZER_FILES]
# The configuration says which kind of tokenizer the files are.
FILES_OF_A_TOKENIZER = ["config.json", *TOKENIZER_FILES]

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def is_hub_id(name: str) -> bool:
    """Whether it is spelled `owner/name`; the Hub is not asked."""
    return _HUB_ID.fullmatch(name) is not None


def fetch_from_hub(repository: str, files: Sequence[str] = ALLOWED_FILES) -> Path:
    """The snapshot folder of `owner/name`, with those of its files that match one of the patterns in `files`.

    Raises RunError where the Hub cannot be reached and ModelError where it has no such model.
    """
    # Imported here: it reads environment variables when it is imported, and most models are local.
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

    try:
        return Path(snapshot_download(repository, allow_patterns=list(files)))
    except RepositoryNotFoundError as error:
        raise ModelError(
            f"{repository}: the Hugging Face Hub has no such model, or it is private or gated "
            "and you are not logged in (hf auth login)."
        ) from error
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        raise RunError(
            f"{repository}: the Hugging Face Hub cannot be reached ({_first_line(error)}) and the model is "
            "not in its local cache; connect to the network, or give the path of a model folder or a GGUF file."
        ) from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
