"""A GGUF file's metadata, read with the types that they should have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from quantgate_engine.errors import ModelError
from quantgate_engine.model.gguf_architectures import ARCHITECTURES, GgufArchitecture
from quantgate_engine.shown import on_one_line, shown, shown_name


class GgufFile:
    """Raises ModelError where the file is no GGUF file, is cut short, or holds a family that is not served."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._reader = gguf.GGUFReader(path)
        # The reader maps the file and checks little: a file that is cut short surfaces as any of these.
        except (ValueError, IndexError, KeyError, OverflowError, OSError) as error:
            reason = on_one_line(str(error), 200)
            raise ModelError(f"{path}: this is not a whole GGUF file ({reason}); fetch or copy it again.") from error
        self.architecture_name = str(self.required("general.architecture"))

    @property
    def tensors(self) -> list[Any]:
        """The reader's tensors: name, tensor_type, shape (fastest dimension first), data (numpy)."""
        return list(self._reader.tensors)

    @property
    def architecture(self) -> GgufArchitecture:
        known = ARCHITECTURES.get(self.architecture_name)
        if known is None:
            raise ModelError(
                f"{self.path}, general.architecture: {shown(self.architecture_name)} is not a family that quantgate "
                f"reads; expected one of {', '.join(ARCHITECTURES)}."
            )
        return known

    def get(self, key: str) -> Any:
        """The value of `key` as a Python value, or None."""
        field = self._reader.fields.get(key)
        try:
            return None if field is None else field.contents()
        except (ValueError, IndexError, TypeError) as error:
            reason = on_one_line(str(error), 200)
            raise ModelError(f"{self.path}, {key}: the value is damaged ({reason}); fetch or copy it again.") from error

    def text(self, key: str) -> str | None:
        value = self.get(key)
        if value is not None and not isinstance(value, str):
            raise self._unfit(key, "text", value)
        return value

    def integer(self, key: str) -> int | None:
        """At least 0."""
        value = self.get(key)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
            raise self._unfit(key, "an integer", value)
        return value

    def required(self, key: str) -> Any:
        value = self.get(key)
        if value is None:
            raise ModelError(f"{self.path}: the metadata key {key} is missing; export the model again.")
        return value

    def of_architecture(self, key: str) -> Any:
        return self.get(f"{self.architecture_name}.{key}")

    def int_of_architecture(self, key: str) -> int | None:
        """None as well where it is 0, which says that there is none."""
        return self.integer(f"{self.architecture_name}.{key}") or None

    def required_int(self, key: str) -> int:
        """A positive integer of the architecture's own keys, such as `block_count`."""
        own = f"{self.architecture_name}.{key}"
        self.required(own)
        value = self.integer(own)
        if not value:
            raise self._unfit(own, "a positive integer", value)
        return value

    def float_of_architecture(self, key: str, default: float) -> float:
        """A float32 value as the shortest decimal that rounds to it: 1e-05, not 9.999999747378752e-06."""
        value = self.of_architecture(key)
        if value is None:
            return default
        if not isinstance(value, (int, float)):
            raise self._unfit(f"{self.architecture_name}.{key}", "a number", value)
        return float(str(np.float32(value)))

    def values(self, tensor: Any) -> NDArray[np.float32]:
        """What the tensor's blocks stand for, in its shape, slowest dimension first."""
        try:
            # Without a warning of values that are not finite, which are for the caller to refuse.
            with np.errstate(all="ignore"):
                dequantized = gguf.dequantize(tensor.data, tensor.tensor_type)
                values: NDArray[np.float32] = dequantized.astype(np.float32, copy=False)
            return values.reshape(tuple(int(size) for size in reversed(tensor.shape)))
        except NotImplementedError as error:
            raise ModelError(
                f"{self.path}: tensor {shown_name(tensor.name)} is stored as {tensor.tensor_type.name}, which the gguf "
                "package cannot dequantize; use a file of another quantization."
            ) from error
        except ValueError as error:
            raise ModelError(
                f"{self.path}: tensor {shown_name(tensor.name)} is no {tensor.tensor_type.name} of its shape "
                f"({on_one_line(str(error), 200)}); fetch or copy the file again."
            ) from error

    def _unfit(self, key: str, expected: str, found: object) -> ModelError:
        return ModelError(f"{self.path}, {key}: {expected} was expected, found {shown(found)}; export the model again.")
