"""A model of the Hugging Face Hub, by its own client and into its own cache."""

from __future__ import annotations

from pathlib import Path

from quantgate_engine.errors import ModelError, RunError
from quantgate_engine.model.checkpoint_check import TOKENIZER_FILES

# Nothing pickled and no Python file is ever asked for.
ALLOWED_FILES = ["config.json", "generation_config.json", "*.safetensors", "*.safetensors.index.json", *TOKENIZER_FILES]


def fetch_from_hub(repository: str) -> Path:
    """The snapshot folder of `owner/name`.

    Raises RunError where the Hub cannot be reached and ModelError where it has no such model.
    """
    # Imported here: it reads environment variables when it is imported, and most models are local.
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

    try:
        return Path(snapshot_download(repository, allow_patterns=ALLOWED_FILES))
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
