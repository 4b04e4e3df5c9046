"""Weights quantized and multiplied by bitsandbytes: what transformers' `load_in_8bit` and `load_in_4bit` serve."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from packaging.version import Version
from torch import Tensor

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.quant.precision import Precision, fastest_16_bit_precision
from quantgate_engine.quant.scheme import Scheme
from quantgate_kernels.bnb import int8, nf4
from quantgate_kernels.bnb.weights import NF4_BLOCK, BnbInt8Weight, BnbNf4Weight

OLDEST_VERSION = "0.50"
HEAD = "lm_head"


def missing_bitsandbytes() -> str | None:
    """What to install; None where bitsandbytes is there. It is not imported for that."""
    try:
        found = version("bitsandbytes")
    except PackageNotFoundError:
        return 'needs bitsandbytes; run: pip install "quantgate[bnb]"'
    if Version(found) >= Version(OLDEST_VERSION):
        return None
    return f'needs bitsandbytes {OLDEST_VERSION} or newer, and {found} is installed; run: pip install "quantgate[bnb]"'


def quantize_bnb_int8(weight: Tensor, _precision: Precision) -> BnbInt8Weight:
    return int8.quantize(weight)


def quantize_bnb_nf4(weight: Tensor, _precision: Precision) -> BnbNf4Weight:
    return nf4.quantize(weight)


def check_nf4(inputs: Mapping[str, int]) -> None:
    """inputs: layer name -> number of inputs.

    Raises ConfigurationError for rows that are no whole blocks, whose products may be wrong on CPUs (with bitsandbytes
    0.50.2 an error of 24 % at 96 inputs, and of 9 % at 128), and for the head: on CPUs its logits would be rounded to
    bfloat16.
    """
    misfits = [f"{name} ({count} inputs)" for name, count in inputs.items() if count % NF4_BLOCK]
    if misfits:
        raise ConfigurationError(
            f"Scheme {BNB_NF4.name} does not fit {', '.join(misfits)}: inputs must be a multiple of {NF4_BLOCK}, the "
            "block of bitsandbytes; choose another scheme."
        )
    if HEAD in inputs:
        raise ConfigurationError(
            f"Scheme {BNB_NF4.name} does not fit {HEAD}: bitsandbytes rounds its products on CPUs to bfloat16, and "
            "logits may not be rounded; choose another scheme for it, such as int4-g64."
        )


BNB_INT8 = Scheme(
    "bnb-int8",
    "LLM.int8() by bitsandbytes: INT8 weights and activations, outliers of 6 and more in 16 bits",
    fastest_16_bit_precision,
    quantize_bnb_int8,
    linear_operands="int8 but for outliers",
    missing=missing_bitsandbytes,
)
BNB_NF4 = Scheme(
    "bnb-nf4",
    f"NF4 by bitsandbytes: 4-bit weights, one scale per {NF4_BLOCK} inputs; 16-bit activations",
    fastest_16_bit_precision,
    quantize_bnb_nf4,
    check_inputs=check_nf4,
    missing=missing_bitsandbytes,
)
