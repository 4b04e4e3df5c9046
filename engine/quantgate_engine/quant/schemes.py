"""Every scheme by its name."""

from __future__ import annotations

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.quant.bitsandbytes_schemes import BNB_INT8, BNB_NF4
from quantgate_engine.quant.dense import store_dense
from quantgate_engine.quant.int4_group import OFFERED_GROUP_SIZES, int4_group_scheme
from quantgate_engine.quant.int8_channel import quantize_int8_channel
from quantgate_engine.quant.int8_dynamic import quantize_int8_dynamic
from quantgate_engine.quant.methods.named_recipes import NAMED_RECIPES
from quantgate_engine.quant.precision import bfloat16_precision, fastest_16_bit_precision, float32_precision
from quantgate_engine.quant.scheme import Scheme
from quantgate_engine.quant.stored_scheme import STORED, stored_scheme

BASELINE = "fp16"

SCHEMES: dict[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        Scheme("fp32", "32-bit weights and activations", float32_precision, store_dense),
        Scheme("bf16", "bfloat16 weights and activations", bfloat16_precision, store_dense),
        Scheme(BASELINE, "16-bit baseline: the device's fastest 16-bit path", fastest_16_bit_precision, store_dense),
        Scheme(
            "int8-w8a16",
            "INT8 weights, symmetric round-to-nearest, one scale per output channel; 16-bit activations",
            fastest_16_bit_precision,
            quantize_int8_channel,
        ),
        Scheme(
            "int8-w8a8",
            "INT8 weights, symmetric round-to-nearest, one scale per output channel; INT8 activations, one per token",
            fastest_16_bit_precision,
            quantize_int8_dynamic,
            linear_operands="int8",
        ),
        *(int4_group_scheme(group_size) for group_size in OFFERED_GROUP_SIZES),
        BNB_INT8,
        BNB_NF4,
    )
}
"""Those that make weights of floats; `stored` takes them as they are."""

PREPARED_SCHEMES: dict[str, Scheme] = {
    named.name: stored_scheme(named.name, f"{named.summary}; quantized once, into the cache")
    for named in NAMED_RECIPES.values()
    if named.name not in SCHEMES
}
"""Recipes too slow to be carried out at each load: weights are those of a checkpoint that is prepared before."""


def find_scheme(name: str) -> Scheme:
    """Raises ConfigurationError, with the known names, for an unknown one, and for one that needs a missing package."""
    known = {**SCHEMES, STORED.name: STORED, **PREPARED_SCHEMES}
    if name not in known:
        raise ConfigurationError(f"Unknown scheme {name!r}; expected one of {', '.join(known)}.")
    missing = known[name].missing()
    if missing is not None:
        raise ConfigurationError(f"Scheme {name} {missing}.")
    return known[name]
