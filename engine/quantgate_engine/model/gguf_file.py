"""A GGUF file's metadata, read with the types that they should have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np

from quantgate_engine.errors import ModelError
from quantgate_engine.model.gguf_architectures import ARCHITECTURES, GgufArchitecture


class GgufFile:
    """Raises ModelError where the file is no GGUF file, is cut short, or holds a family that is not served."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._reader = gguf.GGUFReader(path)
        # The reader maps the file and checks little: a file that is cut short surfaces as any of these.
        except (ValueError, IndexError, KeyError, OverflowError, OSError) as error:
            raise ModelError(f"{path}: this is not a whole GGUF file ({error}); fetch or copy it again.") from error
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
                f"{self.path}, general.architecture: {self.architecture_name!r} is not a family that quantgate reads; "
                f"expected one of {', '.join(ARCHITECTURES)}."
            )
        return known

    def get(self, key: str) -> Any:
        """The value of `key` as a Python value, or None."""
        field = self._reader.fields.get(key)
        return None if field is None else field.contents()

    def required(self, key: str) -> Any:
        value = self.get(key)
        if value is None:
            raise ModelError(f"{self.path}: the metadata key {key} is missing; export the model again.")
        return value

    def of_architecture(self, key: str) -> Any:
        return self.get(f"{self.architecture_name}.{key}")

    def required_int(self, key: str) -> int:
        """An integer of the architecture's own keys, such as `block_count`."""
        value = self.required(f"{self.architecture_name}.{key}")
        if not isinstance(value, int):
            raise ModelError(f"{self.path}, {self.architecture_name}.{key}: an integer was expected, found {value!r}.")
        return value

    def float_of_architecture(self, key: str, default: float) -> float:
        """A float32 value as the shortest decimal that rounds to it: 1e-05, not 9.999999747378752e-06."""
        value = self.of_architecture(key)
        return default if value is None else float(str(np.float32(value)))
