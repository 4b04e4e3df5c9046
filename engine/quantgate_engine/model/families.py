"""The decoder families: what the name of each says beyond its config.json."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from quantgate_engine.model.config_fields import ConfigFields
from quantgate_engine.model.windows import Windows, one_window, upper_layers, whole_context

_ATTENTION_INPUTS = frozenset({"q_proj", "k_proj", "v_proj"})
ATTENTION = _ATTENTION_INPUTS | {"o_proj"}
_FEED_FORWARD = frozenset({"gate_proj", "up_proj", "down_proj"})

# transformers' Qwen2Config and Qwen3Config.
_QWEN_WINDOWS = {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28}


@dataclass(frozen=True, slots=True)
class DecoderFamily:
    """biased: the kinds of linear layer that have a bias; windows: each layer's; defaults: of keys that may be missing.

    A key that is there and null keeps that meaning. Defaults are those of transformers' configuration classes.
    has_head_norm: queries and keys are normalised per head.
    """

    biased: Callable[[ConfigFields], frozenset[str]]
    windows: Callable[[ConfigFields, int], Windows]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    has_head_norm: bool = False


def _no_biases(_fields: ConfigFields) -> frozenset[str]:
    return frozenset()


def _biased_inputs(_fields: ConfigFields) -> frozenset[str]:
    return _ATTENTION_INPUTS


def _biased_attention(fields: ConfigFields) -> frozenset[str]:
    return ATTENTION if fields.flag("attention_bias", default=False) else frozenset()


def _biases_as_stated(fields: ConfigFields) -> frozenset[str]:
    return _biased_attention(fields) | (_FEED_FORWARD if fields.flag("mlp_bias", default=False) else frozenset())


FAMILIES: Mapping[str, DecoderFamily] = MappingProxyType(
    {
        "llama": DecoderFamily(_biases_as_stated, whole_context),
        "mistral": DecoderFamily(_no_biases, one_window, defaults={"sliding_window": 4096}),
        "qwen2": DecoderFamily(_biased_inputs, upper_layers, defaults=_QWEN_WINDOWS),
        "qwen3": DecoderFamily(
            _biased_attention, upper_layers, defaults={**_QWEN_WINDOWS, "head_dim": 128}, has_head_norm=True
        ),
    }
)
"""By `model_type`; SmolLM calls itself llama."""
