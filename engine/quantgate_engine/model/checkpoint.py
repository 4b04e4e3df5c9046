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
from quantgate_engine.model.checkpoint_check import SINGLE_WEIGHTS_FILE, indexed_files, is_there, weight_files
from quantgate_engine.model.finite_weights import not_finite
from quantgate_engine.shown import on_one_line, shown_name

FLOAT_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
"""Those of 8 bits and fewer mean nothing without scales, which a family's own tensors do not have."""


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
                reason = on_one_line(str(error), 200)
                raise ModelError(
                    f"{path}: this is not a readable safetensors file ({reason}); fetch or copy it again."
                ) from error
            self._files.append(handle)
            names: list[str] = handle.keys()
            for name in names:
                if name in self._homes:
                    raise ModelError(
                        f"{folder}: tensor {shown_name(name)} is in {self._homes[name][0].name} and in {path.name}, "
                        "and nothing says which counts; fetch the model again."
                    )
                self._homes[name] = (path, handle)
        self._require_indexed()

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
        # Asked before the tensor is read, which may be of any size.
        found: list[int] = handle.get_slice(name).get_shape()
        if tuple(found) != shape:
            raise ModelError(
                f"{self.folder}: tensor {name} has the shape {found}; config.json calls for {list(shape)}."
            )
        tensor = self.stored(name)
        if tensor.dtype not in FLOAT_DTYPES:
            raise ModelError(
                f"{self.folder}: tensor {name} is stored as {tensor.dtype}; a floating dtype was expected, of 16 bits "
                "or more."
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
        """The tensor as it is, whether it was taken or not. Raises ModelError for a dtype that torch does not have."""
        path, handle = self._homes[name]
        try:
            tensor: Tensor = handle.get_tensor(name)
        except SafetensorError as error:
            raise ModelError(
                f"{path}: tensor {shown_name(name)} cannot be read ({on_one_line(str(error), 200)}); use a model whose "
                "weights have 16 bits, or codes that are served."
            ) from error
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
        left = [name for name in unread if not (name.endswith(".bias") and _all_zero(self.stored(name)))]
        if left:
            raise ModelError(
                f"{self.folder}: the weights hold {len(left)} tensors that this decoder has no place for "
                f"(first: {shown_name(left[0])}); the architecture is not served."
            )

    def _require_indexed(self) -> None:
        """A shard that lost a tensor is told by the index, also where the tensor is one that some models do without."""
        if is_there(self.folder / SINGLE_WEIGHTS_FILE):
            return
        for name, file_name in (indexed_files(self.folder) or {}).items():
            if name not in self._homes:
                raise ModelError(
                    f"{self.folder / file_name}: the index says that tensor {shown_name(name)} is there, and no file "
                    "has it; fetch the model again."
                )


def _all_zero(tensor: Tensor) -> bool:
    return tensor.dtype in FLOAT_DTYPES and not tensor.any()


def _require_finite(values: Tensor, path: Path, name: str) -> None:
    # The extremes tell, a tenth as dear as to ask each value: NaN is either, and an infinity is one of them.
    least, greatest = torch.aminmax(values)
    if not (math.isfinite(least) and math.isfinite(greatest)):
        raise not_finite(path, name, values.numel() - int(values.isfinite().sum()), values.numel())
