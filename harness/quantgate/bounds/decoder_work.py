"""From a loaded model to what its steps must at least read and compute."""

from __future__ import annotations

from collections import Counter

from quantgate_engine.model.config import DecoderConfig
from quantgate_engine.model_info import ModelInfo
from quantgate_kernels.roofline import DecoderWork, Width

INT8_PRODUCTS = "linear layers int8"
"""What `ModelInfo.compute_dtype` says of arms some of whose linear layers multiply int8 activations by int8 weights."""

_BYTES_OF_FLOAT32, _BYTES_OF_16_BITS = 4, 2


def decoder_work(model: DecoderConfig, info: ModelInfo) -> DecoderWork:
    """model: the shapes of what `info` tells of."""
    head_parameters = model.vocab_size * model.hidden_size
    width = _width(info.compute_dtype)
    return DecoderWork(
        linear_bytes=info.linear_weight_bytes,
        head_bytes=head_parameters * (_BYTES_OF_FLOAT32 if _width(info.head_dtype) == "float32" else _BYTES_OF_16_BITS),
        kv_bytes_per_token=info.kv_bytes_per_token,
        linear_parameters=model.num_layers * model.linear_parameters_per_layer,
        head_parameters=head_parameters,
        query_size=model.num_heads * model.head_dim,
        windows=tuple(Counter(model.windows).items()),
        linear_width="int8" if INT8_PRODUCTS in info.compute_dtype else width,
        width=width,
    )


def _width(dtype: str) -> Width:
    """Of a dtype as `ModelInfo` names it."""
    return "float32" if dtype.startswith("float32") else "16-bit"
