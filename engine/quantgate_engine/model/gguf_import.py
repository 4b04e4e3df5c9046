"""A GGUF file as a Hugging Face folder: config.json, float16 safetensors, tokenizer, chat template."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from quantgate_engine.model.cache import require_free_space
from quantgate_engine.model.gguf_config import model_config, special_tokens
from quantgate_engine.model.gguf_file import GgufFile
from quantgate_engine.model.gguf_tokenizer import write_tokenizer
from quantgate_engine.model.gguf_weights import previous_quantization, write_weights

_TOKENIZER_BYTES = 32_000_000


def import_gguf(path: Path, folder: Path) -> dict[str, Any]:
    """Fills the empty `folder` from the GGUF file; returns what the file tells about its origin.

    Raises ModelError where the file is damaged or needs what the engine does not compute.
    """
    file = GgufFile(path)
    config = model_config(file)
    weights = sum(math.prod(int(size) for size in tensor.shape) for tensor in file.tensors)
    require_free_space(folder, 2 * weights + _TOKENIZER_BYTES)
    write_weights(file, folder, config["num_attention_heads"], config["num_key_value_heads"])
    write_tokenizer(file, folder)
    _write_json(folder / "config.json", config)
    _write_json(folder / "generation_config.json", special_tokens(file))
    origin = {
        "format": "gguf",
        "title": file.get("general.name"),
        "licence": file.get("general.license"),
        "previous_quantization": previous_quantization(file),
        "stored_dtype": config["dtype"],
    }
    return {key: value for key, value in origin.items() if value is not None}


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
