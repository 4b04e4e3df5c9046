"""`llama3`: low frequencies are divided, high ones are left, those between are blended (Llama 3.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from quantgate_engine.model.config_fields import ConfigFields
from quantgate_engine.model.rope_scaling.base import RopeScaling, RotatedModel, Rotation, base_frequencies


@dataclass(frozen=True, slots=True)
class Llama3Scaling(RopeScaling):
    """By wavelength against the trained context, as in Meta's llama-models (`apply_scaling`)."""

    factor: float
    low_frequency_factor: float
    high_frequency_factor: float
    trained_context: int

    @classmethod
    def read(cls, fields: ConfigFields, model: RotatedModel) -> Llama3Scaling:
        low, high = fields.number("low_freq_factor"), fields.number("high_freq_factor")
        if high <= low:
            raise fields.error("high_freq_factor", f"a number above low_freq_factor ({low:g})", high)
        return cls(fields.number("factor"), low, high, model.trained_context)

    def rotation(self, head_dim: int, theta: float, _longest_context: int, /) -> Rotation:
        return Rotation(tuple(map(self._scaled, base_frequencies(head_dim, theta))))

    def _scaled(self, frequency: float) -> float:
        """The share that stays unscaled rises from 0 to 1 with the waves that the trained context holds.

        It is 0 below `low_frequency_factor` waves and 1 above `high_frequency_factor`.
        """
        waves = self.trained_context * frequency / (2 * math.pi)
        span = self.high_frequency_factor - self.low_frequency_factor
        unscaled = min(1.0, max(0.0, (waves - self.low_frequency_factor) / span))
        return (1 - unscaled) * frequency / self.factor + unscaled * frequency
