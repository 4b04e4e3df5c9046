"""Weights written as safetensors, a shard at a time, so that one shard at most stands in memory."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from quantgate_engine.model.checkpoint_check import SINGLE_WEIGHTS_FILE, WEIGHTS_INDEX_FILE

SHARD_BYTES = 2_000_000_000

_SYSTEM_ERROR = re.compile(r"os error (\d+)")


class ShardWriter:
    """Writes into `folder`. Files get their names, and more than one an index, when it is finished."""

    def __init__(self, folder: Path, shard_bytes: int = SHARD_BYTES) -> None:
        self._folder = folder
        self._shard_bytes = shard_bytes
        self._pending: dict[str, Tensor] = {}
        self._pending_bytes = 0
        self._shards: list[list[str]] = []

    def add(self, name: str, tensor: Tensor) -> None:
        """Raises OSError where the disk is full."""
        if self._pending and self._pending_bytes + tensor.nbytes > self._shard_bytes:
            self._write()
        self._pending[name] = tensor.contiguous()
        self._pending_bytes += tensor.nbytes

    def finish(self) -> None:
        """Raises OSError where the disk is full."""
        self._write()
        if len(self._shards) == 1:
            (self._folder / _pending_name(0)).rename(self._folder / SINGLE_WEIGHTS_FILE)
            return
        weight_map: dict[str, str] = {}
        for index, names in enumerate(self._shards):
            file_name = f"model-{index + 1:05d}-of-{len(self._shards):05d}.safetensors"
            (self._folder / _pending_name(index)).rename(self._folder / file_name)
            weight_map |= dict.fromkeys(names, file_name)
        total_size = sum(path.stat().st_size for path in self._folder.glob("model-*.safetensors"))
        content = {"metadata": {"total_size": total_size}, "weight_map": weight_map}
        (self._folder / WEIGHTS_INDEX_FILE).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

    def _write(self) -> None:
        save_tensors(self._pending, self._folder / _pending_name(len(self._shards)))
        self._shards.append(list(self._pending))
        self._pending, self._pending_bytes = {}, 0


def save_tensors(tensors: dict[str, Tensor], path: Path) -> None:
    """Raises OSError where the system refuses."""
    try:
        save_file(tensors, path, metadata={"format": "pt"})
    except SafetensorError as error:
        raise _system_error(error, path) from error
    # safetensors makes the file private to its owner; a cache may be shared.
    path.chmod(0o644)


def _system_error(error: SafetensorError, path: Path) -> Exception:
    """safetensors wraps what the system said, such as a full disk, into an error with the number in its text."""
    found = _SYSTEM_ERROR.search(str(error))
    return OSError(int(found[1]), os.strerror(int(found[1])), str(path)) if found else error


def _pending_name(index: int) -> str:
    return f"shard-{index}.safetensors"
