"""What the rest of the engine gets of a model: a folder that is complete, safe to read and identified by hash."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A local Hugging Face folder (config.json, safetensors, tokenizer files).

    provenance: where the weights came from, as JSON values; `previous_quantization` is there where they were
    quantized before they reached us.
    weights_sha256, tokenizer_sha256: hexadecimal, as `hashing.combined_sha256` defines them.
    """

    path: Path
    name: str
    weights_sha256: str
    tokenizer_sha256: str
    provenance: dict[str, Any] = field(default_factory=dict, hash=False)
