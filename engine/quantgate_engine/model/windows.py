"""How far back each layer looks: None for the whole context, else so many tokens, its own among them."""

from __future__ import annotations

from quantgate_engine.model.config_fields import ConfigFields

Windows = tuple[int | None, ...]

SLIDING = "sliding_attention"
FULL = "full_attention"


def whole_context(fields: ConfigFields, num_layers: int) -> Windows:
    """For a family that has no windows: one that is stated all the same and not switched off is refused."""
    window = fields.values.get("sliding_window")
    if window is not None and fields.flag("use_sliding_window", default=True):
        raise fields.error("sliding_window", "null, as this family attends over the whole context", window)
    return (None,) * num_layers


def one_window(fields: ConfigFields, num_layers: int) -> Windows:
    """`sliding_window` in all layers (Mistral)."""
    window = fields.optional_integer("sliding_window")
    kinds = fields.values.get("layer_types")
    # transformers ignores this field here and vLLM obeys it: a file that mixes the two has no one right answer.
    if kinds is not None and kinds != [FULL if window is None else SLIDING] * num_layers:
        raise fields.error("layer_types", "none, or one that agrees with sliding_window in all layers", kinds)
    return (window,) * num_layers


def upper_layers(fields: ConfigFields, num_layers: int) -> Windows:
    """`sliding_window` where `use_sliding_window` is on, in the layers that `layer_types` names.

    Without `layer_types`, in those from `max_window_layers` on (Qwen2, Qwen3).
    """
    window = fields.optional_integer("sliding_window") if fields.flag("use_sliding_window", default=False) else None
    kinds = fields.values.get("layer_types")
    if kinds is None:
        whole = fields.integer("max_window_layers", least=0) if window is not None else num_layers
        return tuple(window if layer >= whole else None for layer in range(num_layers))
    if not isinstance(kinds, list) or len(kinds) != num_layers or any(kind not in (FULL, SLIDING) for kind in kinds):
        raise fields.error("layer_types", f"a list of {num_layers} entries, each {FULL} or {SLIDING}", kinds)
    if window is None and SLIDING in kinds:
        raise fields.error(
            "sliding_window",
            "a number of tokens, with use_sliding_window true, as layer_types names sliding layers",
            fields.values.get("sliding_window"),
        )
    return tuple(window if kind == SLIDING else None for kind in kinds)
