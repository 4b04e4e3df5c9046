"""Weights as a quantized checkpoint stores them: the scheme that quantizes nothing."""

from __future__ import annotations

from torch import Tensor

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.quant.precision import Precision, fastest_16_bit_precision
from quantgate_engine.quant.scheme import Scheme
from quantgate_kernels.types import LinearPart


def _refuse(_weight: Tensor, _precision: Precision) -> LinearPart:
    raise ConfigurationError(
        f"Scheme {STORED.name} takes weights as a checkpoint quantized them and quantizes none itself; choose another."
    )


STORED = Scheme(
    "stored",
    "as the checkpoint is quantized: GPTQ, AWQ, compressed-tensors or bitsandbytes; 16-bit activations",
    fastest_16_bit_precision,
    _refuse,
)
