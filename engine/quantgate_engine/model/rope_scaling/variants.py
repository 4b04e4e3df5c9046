"""The variants by the names that config.json calls them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from quantgate_engine.model.config_fields import ConfigFields
from quantgate_engine.model.rope_scaling.base import RopeScaling, RotatedModel
from quantgate_engine.model.rope_scaling.dynamic import DynamicScaling
from quantgate_engine.model.rope_scaling.linear import LinearScaling
from quantgate_engine.model.rope_scaling.llama3 import Llama3Scaling
from quantgate_engine.model.rope_scaling.longrope import LongRopeScaling
from quantgate_engine.model.rope_scaling.proportional import ProportionalScaling
from quantgate_engine.model.rope_scaling.unscaled import Unscaled
from quantgate_engine.model.rope_scaling.yarn import YarnScaling

UNSCALED = "default"
PROPORTIONAL = "proportional"

ROPE_VARIANTS: Mapping[str, Callable[[ConfigFields, RotatedModel], RopeScaling]] = MappingProxyType(
    {
        UNSCALED: Unscaled.read,
        "linear": LinearScaling.read,
        "dynamic": DynamicScaling.read,
        "llama3": Llama3Scaling.read,
        "yarn": YarnScaling.read,
        "longrope": LongRopeScaling.read,
        PROPORTIONAL: ProportionalScaling.read,
    }
)
