"""`proportional`: only the first pairs of each head turn, and the others stay as they are."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate_engine.model.config_fields import ConfigFields
from quantgate_engine.model.rope_scaling.base import RopeScaling, RotatedModel, Rotation, base_frequencies


@dataclass(frozen=True, slots=True)
class ProportionalScaling(RopeScaling):
    """As transformers has it (`_compute_proportional_rope_parameters`): the frequencies are those of the whole head.

    partial_rotary_factor: the share of pairs that turn, 0 to 1; their frequencies are divided by `factor`.
    """

    partial_rotary_factor: float
    factor: float

    @classmethod
    def read(cls, fields: ConfigFields, _model: RotatedModel) -> ProportionalScaling:
        share = fields.number("partial_rotary_factor", default=1.0)
        if share > 1:
            raise fields.error("partial_rotary_factor", "a number above 0 and at most 1", share)
        return cls(share, fields.number("factor", default=1.0))

    def rotation(self, head_dim: int, theta: float, _longest_context: int, /) -> Rotation:
        turning = int(self.partial_rotary_factor * head_dim // 2)
        frequencies = base_frequencies(head_dim, theta)
        turned = tuple(frequency / self.factor for frequency in frequencies[:turning])
        return Rotation(turned + (0.0,) * (len(frequencies) - turning))
