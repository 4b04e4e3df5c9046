"""Weights as a quantized checkpoint stores them: schemes that quantize nothing themselves."""

from __future__ import annotations

from torch import Tensor

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.quant.precision import Precision, fastest_16_bit_precision
from quantgate_engine.quant.scheme import Scheme
from quantgate_kernels.types import LinearPart


def stored_scheme(name: str, summary: str) -> Scheme:
    def refuse(_weight: Tensor, _precision: Precision) -> LinearPart:
        raise ConfigurationError(
            f"Scheme {name} takes weights as a checkpoint quantized them and quantizes none itself; choose another."
        )

    return Scheme(name, summary, fastest_16_bit_precision, refuse, as_stored=True)


STORED = stored_scheme(
    "stored", "as the checkpoint is quantized: GPTQ, AWQ, compressed-tensors or bitsandbytes; 16-bit activations"
)
