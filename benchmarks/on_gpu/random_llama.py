"""A model shaped like Llama-3-8B with random weights, through the engine's own loader, and on no disk."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import torch
from benchmarks.on_gpu.llama import CONFIG
from torch import Tensor

from quantgate_engine.model import loader
from quantgate_engine.model.model_folder import ModelFolder

NAME = "Llama-3-8B's shape, random weights"
SPREAD = 0.02
"""Standard deviation of the weights, as models of this size start with."""


class RandomCheckpoint:
    """What `Checkpoint` is to the loader: gives any tensor that is asked for, made where it will be used."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def __enter__(self) -> RandomCheckpoint:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def take(self, _name: str, shape: tuple[int, ...]) -> Tensor:
        if len(shape) == 1:
            return torch.ones(shape, device=self._device)
        return torch.randn(shape, device=self._device).mul_(SPREAD)

    def refuse_leftovers(self, _ignored_suffixes: tuple[str, ...]) -> None:
        pass


@contextmanager
def random_llama(device: torch.device, **changes: object) -> Iterator[ModelFolder]:
    """A folder that holds its config.json alone; what is loaded from it inside gets weights that are made there.

    changes: to the config.json.
    """
    with (
        TemporaryDirectory() as folder,
        patch.object(loader, "Checkpoint", lambda _folder: RandomCheckpoint(device)),
    ):
        path = Path(folder)
        (path / "config.json").write_text(json.dumps({**CONFIG, **changes}), encoding="utf-8")
        yield ModelFolder(path, NAME, weights_sha256="random", tokenizer_sha256="none")
