"""The rotary embedding that a config.json asks for, in the spelling of either generation of transformers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from quantgate_engine.model.config_fields import ConfigFields
from quantgate_engine.model.rope_scaling.base import RopeScaling, RotatedModel, Rotation
from quantgate_engine.model.rope_scaling.variants import PROPORTIONAL, ROPE_VARIANTS, UNSCALED

DEFAULT_ROPE_THETA = 10_000.0


@dataclass(frozen=True, slots=True)
class RopeConfig:
    """theta: the base of the frequencies; scaling: what is done to them."""

    theta: float
    scaling: RopeScaling

    def rotation(self, head_dim: int, longest_context: int) -> Rotation:
        """longest_context: tokens of the longest sequence that the engine will serve."""
        return self.scaling.rotation(head_dim, self.theta, longest_context)


def read_rope(fields: ConfigFields, head_dim: int, stated_context: int) -> RopeConfig:
    """transformers 5 writes `rope_parameters`, older versions `rope_theta` and `rope_scaling`.

    Where a file has both, `rope_scaling` is what transformers goes by (`convert_rope_params_to_dict`).
    Raises ModelError with the file and the field.
    """
    rope = _rope_object(fields)
    kind = rope.values.get("rope_type", rope.values.get("type", UNSCALED))
    if not isinstance(kind, str) or kind not in ROPE_VARIANTS:
        raise rope.error("rope_type", f"one of {', '.join(ROPE_VARIANTS)}", kind)
    rope = _with_partial_factor(fields, rope, kind)
    theta = rope.number("rope_theta", default=fields.number("rope_theta", default=DEFAULT_ROPE_THETA))
    if theta <= 1:
        raise rope.error("rope_theta", "a number above 1", theta)
    # Where both say it, transformers goes by the file's own field (`standardize_rope_params`).
    holder = fields if fields.values.get("original_max_position_embeddings") is not None else rope
    original_context = holder.optional_integer("original_max_position_embeddings")
    return RopeConfig(theta, ROPE_VARIANTS[kind](rope, RotatedModel(head_dim, stated_context, original_context)))


def _rope_object(fields: ConfigFields) -> ConfigFields:
    for name in ("rope_scaling", "rope_parameters"):
        rope = fields.section(name)
        if rope is None or not rope.values:
            continue
        for key, value in rope.values.items():
            # A group per kind of layer, which the decoder has no place for; read as one object it would name nothing.
            if isinstance(value, dict):
                raise rope.error(key, "one set of values for all layers", value)
        return rope
    return ConfigFields(fields.path, {}, inside="rope_parameters")


def _with_partial_factor(fields: ConfigFields, rope: ConfigFields, kind: str) -> ConfigFields:
    """The rope's own values, with the file's `partial_rotary_factor` where they have none.

    transformers' decoders of this family rotate whole heads, vLLM's a part of each: a model that asks for a part has no
    one right answer, except in the variant that is made for it.
    """
    name = "partial_rotary_factor"
    holder = rope if rope.values.get(name) is not None else fields
    share = holder.number(name, default=1.0)
    if share != 1 and kind != PROPORTIONAL:
        raise holder.error(name, f"1, as heads are rotated whole unless rope_type is {PROPORTIONAL}", share)
    return replace(rope, values={**rope.values, name: share})
