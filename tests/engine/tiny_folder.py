"""A tiny model with its tokenizer, as a folder that `LLM` loads."""

from __future__ import annotations

from pathlib import Path

from tests.engine.tiny_model import TINY_SHAPE, save_tiny_model
from tests.engine.tiny_tokenizer import save_tiny_tokenizer


def save_tiny_folder(path: Path) -> Path:
    save_tiny_model(path)
    save_tiny_tokenizer(path, TINY_SHAPE["vocab_size"])
    return path
