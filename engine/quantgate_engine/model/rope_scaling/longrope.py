"""`longrope`: a divisor of its own for each frequency, one set for short contexts and one for long ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

from quantgate_engine.model.config_fields import ConfigFields
from quantgate_engine.model.rope_scaling.base import RopeScaling, RotatedModel, Rotation, base_frequencies


@dataclass(frozen=True, slots=True)
class LongRopeScaling(RopeScaling):
    """Ding et al. 2024, arXiv:2402.13753. Which set is taken depends on the engine's context limit.

    transformers takes it by the length of the sequence, so that one that grows past the trained context would need all
    its keys again. As vLLM does, an engine that serves such sequences uses the long set for all of them, and one whose
    limit is at most the trained context the short set.
    """

    short_factors: tuple[float, ...]
    long_factors: tuple[float, ...]
    trained_context: int
    attention_factor: float

    @classmethod
    def read(cls, fields: ConfigFields, model: RotatedModel) -> LongRopeScaling:
        trained = model.trained_context
        factor = fields.number("factor", default=model.stated_context / trained)
        # sqrt(1 + ln(factor) / ln(trained context)), as in the authors' code (microsoft/LongRoPE) and in transformers.
        default = math.sqrt(1 + math.log(factor) / math.log(trained)) if factor > 1 else 1.0
        return cls(
            short_factors=fields.numbers("short_factor", model.head_dim // 2),
            long_factors=fields.numbers("long_factor", model.head_dim // 2),
            trained_context=trained,
            attention_factor=fields.number("attention_factor", default=default),
        )

    def rotation(self, head_dim: int, theta: float, longest_context: int, /) -> Rotation:
        divisors = self.long_factors if longest_context > self.trained_context else self.short_factors
        frequencies = base_frequencies(head_dim, theta)
        return Rotation(
            tuple(frequency / divisor for frequency, divisor in zip(frequencies, divisors, strict=True)),
            self.attention_factor,
        )
