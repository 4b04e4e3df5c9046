"""What every format has in common: a layer's storage, which knows its tensors' names and how to read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from quantgate_engine.quant.formats.layer_tensors import LayerTensors


class StoredWeight(Protocol):
    """A weight as it was read: `GroupedCodes`, or `TableCodes` of bitsandbytes."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def dequantize(self) -> Tensor:
        """-> float32 [out, in]: what the codes stand for, by definition."""
        ...


@dataclass(frozen=True, slots=True)
class ReadLayer:
    """remark: what the user should be told once, the same for each layer that it concerns; None for nothing."""

    weight: StoredWeight
    remark: str | None = None


class Storage(Protocol):
    """How one linear layer is stored, by the word of the checkpoint's configuration."""

    @property
    def summary(self) -> str:
        """Such as "4-bit GPTQ, groups of 64"."""
        ...

    @property
    def tensor_names(self) -> tuple[str, ...]:
        """The tensors that belong to the weight, by what follows the layer's name and a dot; not all need be there."""
        ...

    @property
    def int8_activations(self) -> bool:
        """Whether the layer's inputs are to be rounded to INT8, with one scale per token."""
        ...

    def read(self, tensors: LayerTensors, shape: tuple[int, int]) -> ReadLayer:
        """shape: [out, in]. Raises ModelError, one sentence, where the tensors are not what the format calls for."""
        ...
