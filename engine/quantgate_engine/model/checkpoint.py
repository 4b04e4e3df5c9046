"""A safetensors checkpoint (one file or shards) as a map from name to tensor, read one tensor at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from quantgate_engine.errors import ModelError
from quantgate_engine.model.checkpoint_check import weight_files
from quantgate_engine.model.finite_weights import not_finite


class Checkpoint:
    """Knows which tensors were taken, so that a checkpoint that holds more than the decoder reads is refused."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: list[Any] = []
        self._homes: dict[str, tuple[Path, Any]] = {}
        self._taken: set[str] = set()
        for path in weight_files(folder):
            try:
                handle: Any = safe_open(path, framework="pt")
            except (SafetensorError, OSError) as error:
                raise ModelError(f"{path}: this is not a readable safetensors file ({error}).") from error
            names: list[str] = handle.keys()
            self._files.append(handle)
            self._homes.update(dict.fromkeys(names, (path, handle)))

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in self._files:
            handle.__exit__(kind, error, trace)

    def take(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """The tensor in float32, whatever it is stored in: quantization and rounding start from there.

        Raises ModelError where it is missing, misshapen, of integers, or holds a value that is not finite.
        """
        if name not in self._homes:
            raise ModelError(f"{self.folder}: the weights lack the tensor {name} of shape {list(shape)}.")
        path, handle = self._homes[name]
        tensor: Tensor = handle.get_tensor(name)
        if tuple(tensor.shape) != shape:
            raise ModelError(
                f"{self.folder}: tensor {name} has the shape {list(tensor.shape)}; config.json calls for {list(shape)}."
            )
        if not tensor.is_floating_point():
            raise ModelError(
                f"{self.folder}: tensor {name} is stored as {tensor.dtype}; a floating dtype was expected."
            )
        self._taken.add(name)
        values = tensor.to(torch.float32)
        _require_finite(values, path, name)
        return values

    @property
    def names(self) -> list[str]:
        """Of all tensors, in order."""
        return sorted(self._homes)

    def stored(self, name: str) -> Tensor:
        """The tensor as it is, whether it was taken or not."""
        tensor: Tensor = self._homes[name][1].get_tensor(name)
        return tensor

    def take_as_stored(self, layer: str, names: Sequence[str]) -> dict[str, Tensor]:
        """Those of the tensors `layer.name` that are there, by name, of any dtype and shape."""
        present = [name for name in names if f"{layer}.{name}" in self._homes]
        self._taken.update(f"{layer}.{name}" for name in present)
        return {name: self.stored(f"{layer}.{name}") for name in present}

    def refuse_leftovers(self, ignored_suffixes: tuple[str, ...]) -> None:
        """A tensor that nobody read would change the model's answers if it were: better no answers than wrong ones.

        A bias of zeros would not; auto-gptq writes one for every layer.
        """
        unread = sorted(name for name in self._homes if name not in self._taken and not name.endswith(ignored_suffixes))
        left = [name for name in unread if not (name.endswith(".bias") and not self.stored(name).any())]
        if left:
            raise ModelError(
                f"{self.folder}: the weights hold {len(left)} tensors that this decoder has no place for "
                f"(first: {left[0]}); the architecture is not served."
            )


def _require_finite(values: Tensor, path: Path, name: str) -> None:
    # The extremes tell, a tenth as dear as to ask each value: NaN is either, and an infinity is one of them.
    least, greatest = torch.aminmax(values)
    if not (math.isfinite(least) and math.isfinite(greatest)):
        raise not_finite(path, name, values.numel() - int(values.isfinite().sum()), values.numel())
