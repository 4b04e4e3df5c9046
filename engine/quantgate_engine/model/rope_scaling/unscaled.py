"""`default`: frequencies as they were trained."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate_engine.model.config_fields import ConfigFields
from quantgate_engine.model.rope_scaling.base import RopeScaling, RotatedModel, Rotation, base_frequencies


@dataclass(frozen=True, slots=True)
class Unscaled(RopeScaling):
    """No scaling."""

    @classmethod
    def read(cls, _fields: ConfigFields, _model: RotatedModel) -> Unscaled:
        return cls()

    def rotation(self, head_dim: int, theta: float, _longest_context: int, /) -> Rotation:
        return Rotation(base_frequencies(head_dim, theta))
