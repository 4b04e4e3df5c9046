"""The stored tensors of one linear layer, each taken with the dtype and the shape that its format calls for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from quantgate_engine.errors import ModelError
from quantgate_engine.shown import shown_name

SCALE_DTYPES = (torch.float16, torch.bfloat16, torch.float32)


@dataclass(frozen=True, slots=True)
class LayerTensors:
    """place: the file or folder, for errors. layer: such as model.layers.3.mlp.down_proj.

    tensors: those that are stored, by what follows the layer's name and a dot, such as qweight.
    """

    place: str
    layer: str
    tensors: Mapping[str, Tensor]

    def __contains__(self, name: str) -> bool:
        return name in self.tensors

    def take(self, name: str, dtypes: tuple[torch.dtype, ...], shape: tuple[int, ...] | None, why: str) -> Tensor:
        """The tensor `name`. `why` says what calls for it, as in "4-bit GPTQ of 64 outputs and 32 inputs".

        shape: None where any will do. Raises ModelError where the tensor is missing, of another dtype or another shape.
        """
        tensor = self.tensors.get(name)
        if tensor is None:
            form = "" if shape is None else f" of shape {list(shape)}"
            raise self.error(name, f"is missing; {why} needs one{form}; fetch or export the model again")
        if tensor.dtype not in dtypes:
            expected = " or ".join(map(_plain, dtypes))
            raise self.error(name, f"is stored as {_plain(tensor.dtype)}; {why} needs {expected}")
        if shape is not None and tuple(tensor.shape) != shape:
            raise self.error(
                name,
                f"has the shape {list(tensor.shape)}; {why} needs {list(shape)}: the file is damaged, or its "
                "quantization config is another model's",
            )
        return tensor

    def take_scales(self, name: str, shape: tuple[int, ...], why: str) -> Tensor:
        """Scales, in the dtype in which they are stored. Negative ones and zeros have a meaning and are let through.

        Raises ModelError as `take` does, and where a scale is NaN or infinite.
        """
        scales = self.take(name, SCALE_DTYPES, shape, why)
        self.require_finite(name, scales)
        return scales

    def require_finite(self, name: str, values: Tensor) -> None:
        bad = values.numel() - int(values.isfinite().sum())
        if bad:
            raise self.error(
                name,
                f"holds {bad} of {values.numel()} values that are NaN or infinite, so that no weight would mean "
                "anything; quantize or fetch the model again",
            )

    def error(self, name: str, what: str) -> ModelError:
        return ModelError(f"{self.place}: tensor {shown_name(f'{self.layer}.{name}')} {what}.")


def _plain(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
