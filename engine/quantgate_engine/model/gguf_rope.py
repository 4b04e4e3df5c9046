"""A GGUF file's rotary embedding in the words of Hugging Face's config.json."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from quantgate_engine.errors import ModelError
from quantgate_engine.model.gguf_file import GgufFile

FREQUENCY_DIVISORS = "rope_freqs.weight"
"""A tensor of head_dim / 2 divisors, in which llama.cpp's converter writes what config.json calls `llama3`."""

_NEUTRAL = {
    "rope.scaling.attn_factor": 1.0,
    "rope.scaling.yarn_attn_factor": 1.0,
    "rope.scaling.yarn_ext_factor": 1.0,
    "rope.scaling.yarn_log_multiplier": 0.0,
}
"""Keys of llama.cpp that change the scaling and have no counterpart here, with the values that change nothing."""


def rope_fields(file: GgufFile, head_dim: int) -> dict[str, Any]:
    """`rope_theta`, `rope_parameters` and, where there is a scaling, `rope_scaling`.

    transformers 4 reads the first and the last, and would fall back to a theta of 10000; transformers 5 the second.
    Raises ModelError for a scaling that the decoder does not compute.
    """
    _refuse_partial_rotation(file, head_dim)
    theta = file.float_of_architecture("rope.freq_base", 10000.0)
    scaling = _scaling(file, head_dim)
    return {
        "rope_theta": theta,
        "rope_parameters": {"rope_type": "default", **scaling, "rope_theta": theta},
        **({"rope_scaling": scaling} if scaling else {}),
    }


def _scaling(file: GgufFile, head_dim: int) -> dict[str, Any]:
    """Empty where positions are not scaled."""
    for key, neutral in _NEUTRAL.items():
        if file.float_of_architecture(key, neutral) != neutral:
            raise _not_computed(file, key, file.of_architecture(key))
    # llama.cpp (load_hparams): a factor without a type is a linear one, the old name of the factor counts, 0 is none.
    kind = file.text(f"{file.architecture_name}.rope.scaling.type") or "linear"
    factor = file.float_of_architecture("rope.scaling.factor", file.float_of_architecture("rope.scale_linear", 0.0))
    if kind not in _KINDS:
        raise _not_computed(file, "rope.scaling.type", kind)
    scaling = {} if factor in (0.0, 1.0) else _KINDS[kind](file, factor)
    divisors = next((tensor for tensor in file.tensors if tensor.name == FREQUENCY_DIVISORS), None)
    if divisors is None:
        return scaling
    if scaling:
        raise _not_computed(file, "rope.scaling.factor", f"{factor:g}, beside the tensor {FREQUENCY_DIVISORS}")
    return _divided(file, divisors, head_dim)


def _linear(_file: GgufFile, factor: float) -> dict[str, Any]:
    return {"rope_type": "linear", "factor": factor}


def _yarn(file: GgufFile, factor: float) -> dict[str, Any]:
    """llama.cpp's own defaults (ggml_rope_yarn_corr_dims), which are those of the paper."""
    original = file.int_of_architecture("rope.scaling.original_context_length") or file.required_int("context_length")
    return {
        "rope_type": "yarn",
        "factor": factor,
        "original_max_position_embeddings": original,
        "beta_fast": file.float_of_architecture("rope.scaling.yarn_beta_fast", 32.0),
        "beta_slow": file.float_of_architecture("rope.scaling.yarn_beta_slow", 1.0),
    }


def _unscaled(_file: GgufFile, _factor: float) -> dict[str, Any]:
    return {}


_KINDS: Mapping[str, Callable[[GgufFile, float], dict[str, Any]]] = MappingProxyType(
    {"none": _unscaled, "linear": _linear, "yarn": _yarn}
)


def _divided(file: GgufFile, divisors: Any, head_dim: int) -> dict[str, Any]:
    """Given divisors, in the one variant of config.json that takes them as they are: the same for any length."""
    values = file.values(divisors).astype(np.float64).ravel()
    if values.size != head_dim // 2 or not (np.isfinite(values) & (values > 0)).all():
        raise ModelError(
            f"{file.path}: the tensor {FREQUENCY_DIVISORS} should hold {head_dim // 2} positive numbers, one for each "
            "pair of a head's values; export the model again."
        )
    return {
        "rope_type": "longrope",
        "factor": 1.0,
        "attention_factor": 1.0,
        "short_factor": values.tolist(),
        "long_factor": values.tolist(),
        "original_max_position_embeddings": file.required_int("context_length"),
    }


def _refuse_partial_rotation(file: GgufFile, head_dim: int) -> None:
    rotated = file.of_architecture("rope.dimension_count")
    if rotated not in (None, head_dim):
        raise _not_computed(file, "rope.dimension_count", f"{rotated} of {head_dim} values of a head rotated")


def _not_computed(file: GgufFile, key: str, value: object) -> ModelError:
    return ModelError(
        f"{file.path}, {file.architecture_name}.{key}: the model uses a rotary embedding ({value}) that quantgate does "
        "not compute; use another model."
    )
