"""`linear`: positions are divided by a factor (Chen et al. 2023, arXiv:2306.15595)."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate_engine.model.config_fields import ConfigFields
from quantgate_engine.model.rope_scaling.base import RopeScaling, RotatedModel, Rotation, base_frequencies


@dataclass(frozen=True, slots=True)
class LinearScaling(RopeScaling):
    """Dividing all frequencies by `factor` is the same as dividing the positions."""

    factor: float

    @classmethod
    def read(cls, fields: ConfigFields, _model: RotatedModel) -> LinearScaling:
        return cls(fields.number("factor"))

    def rotation(self, head_dim: int, theta: float, _longest_context: int, /) -> Rotation:
        return Rotation(tuple(frequency / self.factor for frequency in base_frequencies(head_dim, theta)))
