"""`dynamic`: the base of the frequencies grows with the sequence, once it is longer than the model's context."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate_engine.model.config_fields import ConfigFields
from quantgate_engine.model.rope_scaling.base import RopeScaling, RotatedModel, Rotation, base_frequencies


@dataclass(frozen=True, slots=True)
class DynamicScaling(RopeScaling):
    """theta * (factor * length / context - (factor - 1))^(d / (d - 2)) for a length above the context, else theta.

    So transformers has it (`_compute_dynamic_ntk_parameters`, context = `max_position_embeddings`). Beyond the context,
    each new token would turn all earlier keys, which lie rotated in the cache. The engine serves no sequence beyond
    `max_position_embeddings`, and up to there the frequencies are the unscaled ones: what it serves, it serves exactly.
    """

    @classmethod
    def read(cls, fields: ConfigFields, _model: RotatedModel) -> DynamicScaling:
        fields.number("factor")
        return cls()

    def rotation(self, head_dim: int, theta: float, _longest_context: int, /) -> Rotation:
        return Rotation(base_frequencies(head_dim, theta))
