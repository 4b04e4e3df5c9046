"""`yarn`: frequencies are divided by how many turns they make in training, and scores are sharpened."""

from __future__ import annotations

import math
from dataclasses import dataclass

from quantgate_engine.model.config_fields import ConfigFields
from quantgate_engine.model.rope_scaling.base import RopeScaling, RotatedModel, Rotation, base_frequencies


@dataclass(frozen=True, slots=True)
class YarnScaling(RopeScaling):
    """Peng et al. 2023, arXiv:2309.00071, sections 3.2 and 3.4, with the details of transformers.

    Pairs that turn more than `beta_fast` times in the trained context keep their frequency, those that turn fewer than
    `beta_slow` times have it divided by `factor`, and between the two a ramp over the pair's index blends.
    truncate: the ramp's ends are rounded outwards to whole indices.
    """

    factor: float
    trained_context: int
    attention_factor: float
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True

    @classmethod
    def read(cls, fields: ConfigFields, model: RotatedModel) -> YarnScaling:
        factor = fields.number("factor", default=model.stated_context / model.trained_context)
        return cls(
            factor=factor,
            trained_context=model.trained_context,
            attention_factor=_attention_factor(fields, factor),
            beta_fast=fields.number("beta_fast", default=32.0),
            beta_slow=fields.number("beta_slow", default=1.0),
            truncate=fields.flag("truncate", default=True),
        )

    def rotation(self, head_dim: int, theta: float, _longest_context: int, /) -> Rotation:
        first, last = self._ramp(head_dim, theta)
        frequencies = []
        for index, frequency in enumerate(base_frequencies(head_dim, theta)):
            scaled = min(1.0, max(0.0, (index - first) / (last - first)))
            frequencies.append(scaled * frequency / self.factor + (1 - scaled) * frequency)
        return Rotation(tuple(frequencies), self.attention_factor)

    def context_limit(self, stated_context: int) -> int:
        """What the factor makes of the trained context: published models often state the latter alone."""
        return max(stated_context, int(self.trained_context * self.factor))

    def _ramp(self, head_dim: int, theta: float) -> tuple[float, float]:
        """Indices of the pairs at which the ramp starts and ends."""
        first = self._index_of(self.beta_fast, head_dim, theta)
        last = self._index_of(self.beta_slow, head_dim, theta)
        if self.truncate:
            first, last = math.floor(first), math.ceil(last)
        first, last = max(first, 0), min(last, head_dim - 1)
        # A ramp of no length would divide by zero; transformers widens it by as much.
        return first, last if last != first else last + 0.001

    def _index_of(self, turns: float, head_dim: int, theta: float) -> float:
        """The index i at which theta^(-2i / head_dim) makes so many turns in the trained context."""
        return head_dim * math.log(self.trained_context / (turns * 2 * math.pi)) / (2 * math.log(theta))


def _attention_factor(fields: ConfigFields, factor: float) -> float:
    """As stated, else 0.1 ln(factor) + 1 (section 3.4); DeepSeek's two `mscale`s give a quotient of such factors."""
    stated = fields.optional_number("attention_factor")
    if stated is not None:
        return stated
    mscale, mscale_all_dim = fields.optional_number("mscale"), fields.optional_number("mscale_all_dim")
    if mscale is not None and mscale_all_dim is not None:
        return _sharpening(factor, mscale) / _sharpening(factor, mscale_all_dim)
    return _sharpening(factor, 1.0)


def _sharpening(factor: float, mscale: float) -> float:
    return 0.1 * mscale * math.log(factor) + 1.0 if factor > 1 else 1.0
