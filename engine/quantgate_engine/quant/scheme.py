"""What a quantization scheme is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from quantgate_engine.quant.precision import Precision
from quantgate_kernels.kernel_set import KernelSet
from quantgate_kernels.types import LinearPart, dtype_name


def any_inputs(_inputs: Mapping[str, int]) -> None:
    """For schemes that fit every layer."""


def nothing_missing() -> None:
    """For schemes that need no further package."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """How linear layers are stored, and in what precision everything else is.

    precision: asks the device and its kernels for the dtypes of embedding, head, activations and KV.
    quantize: (weight float32 [out, in], precision) -> the stored weight.
    check_inputs: (layer name -> its number of inputs) raises ConfigurationError where the scheme does not fit a layer.
    linear_operands: to what the products of linear layers round activations; None where they take them as they are.
    as_stored: weights are those of a checkpoint that was quantized before; `quantize` refuses.
    missing: what has to be installed before the scheme can be used, as the end of a sentence; None where nothing has.
    """

    name: str
    summary: str
    precision: Callable[[torch.device, KernelSet], Precision]
    quantize: Callable[[Tensor, Precision], LinearPart]
    check_inputs: Callable[[Mapping[str, int]], None] = any_inputs
    linear_operands: str | None = None
    as_stored: bool = False
    missing: Callable[[], str | None] = nothing_missing

    def arithmetic(self, precision: Precision) -> str:
        """The widths of activations, for manifests: `bfloat16`, or `bfloat16, linear layers int8`."""
        computed = dtype_name(precision.compute)
        return computed if self.linear_operands is None else f"{computed}, linear layers {self.linear_operands}"
