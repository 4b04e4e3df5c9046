"""The dense decoder family (Llama, SmolLM2, Mistral, Qwen2, Qwen3), read from a Hugging Face config.json."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from quantgate_engine.model.checkpoint_check import is_there, read_json_object
from quantgate_engine.model.config_fields import ConfigFields
from quantgate_engine.model.families import ATTENTION, FAMILIES
from quantgate_engine.model.rope_config import RopeConfig, read_rope
from quantgate_engine.model.windows import Windows

MOST_LAYERS = 10_000
"""Each has names and windows of its own, which are listed before anything of the weights is looked at."""


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """Shapes and constants of one decoder.

    max_position_embeddings: tokens of the longest sequence that the model is made for, scaling of positions included.
    windows: how many tokens each layer looks back over, its own among them; None for all of them.
    biased: the kinds of linear layer that have a bias. has_head_norm: queries and keys are normalised per head.
    """

    model_type: str
    vocab_size: int
    hidden_size: int
    ffn_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rms_norm_eps: float
    rope: RopeConfig
    windows: Windows
    biased: frozenset[str]
    has_head_norm: bool
    max_position_embeddings: int
    tied_head: bool
    eos_token_ids: tuple[int, ...]

    @property
    def query_key_value_size(self) -> int:
        return (self.num_heads + 2 * self.num_kv_heads) * self.head_dim

    @property
    def head_shape(self) -> tuple[int, int]:
        """Of the embedding too: [vocab, hidden]."""
        return self.vocab_size, self.hidden_size

    def linear_inputs(self) -> dict[str, int]:
        """Number of inputs of each kind of linear layer."""
        hidden = dict.fromkeys(("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"), self.hidden_size)
        return {**hidden, "o_proj": self.num_heads * self.head_dim, "down_proj": self.ffn_size}

    def linear_layers(self) -> dict[str, int]:
        """Number of inputs of each linear layer, by its name in Hugging Face's checkpoints."""
        return {
            f"model.layers.{index}.{'self_attn' if kind in ATTENTION else 'mlp'}.{kind}": inputs
            for index in range(self.num_layers)
            for kind, inputs in self.linear_inputs().items()
        }

    @property
    def linear_parameters_per_layer(self) -> int:
        """Weights of one layer's projections; biases, norms and the head are not among them."""
        attention = self.hidden_size * (self.query_key_value_size + self.num_heads * self.head_dim)
        return attention + 3 * self.hidden_size * self.ffn_size


def read_decoder_config(folder: Path) -> DecoderConfig:
    """Raises ModelError with the file and the field where the model is none that the engine serves."""
    path = folder / "config.json"
    stated = ConfigFields(path, read_json_object(path, "a model folder needs one that names its architecture"))
    _refuse_what_is_not_served(stated)
    model_type = str(stated.values["model_type"])
    family = FAMILIES[model_type]
    fields = replace(stated, values={**family.defaults, **stated.values})
    num_heads = fields.integer("num_attention_heads")
    num_kv_heads = fields.integer("num_key_value_heads", default=num_heads)
    if num_heads % num_kv_heads:
        raise fields.error("num_key_value_heads", f"a divisor of num_attention_heads ({num_heads})", num_kv_heads)
    hidden_size, num_layers = fields.integer("hidden_size"), fields.integer("num_hidden_layers", most=MOST_LAYERS)
    head_dim = fields.integer("head_dim", default=hidden_size // num_heads)
    if head_dim % 2:
        raise fields.error("head_dim", "an even number, as rotation takes values in pairs", head_dim)
    stated_context = fields.integer("max_position_embeddings")
    rope = read_rope(fields, head_dim, stated_context)
    return DecoderConfig(
        model_type=model_type,
        vocab_size=fields.integer("vocab_size"),
        hidden_size=hidden_size,
        ffn_size=fields.integer("intermediate_size"),
        num_layers=num_layers,
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=head_dim,
        rms_norm_eps=fields.number("rms_norm_eps", default=1e-6),
        rope=rope,
        windows=family.windows(fields, num_layers),
        biased=family.biased(fields),
        has_head_norm=family.has_head_norm,
        max_position_embeddings=rope.scaling.context_limit(stated_context),
        tied_head=fields.flag("tie_word_embeddings", default=False),
        eos_token_ids=_eos_token_ids(folder, fields),
    )


def _refuse_what_is_not_served(fields: ConfigFields) -> None:
    values = fields.values
    if str(values.get("model_type")) not in FAMILIES:
        raise fields.error("model_type", f"one of {', '.join(FAMILIES)}", values.get("model_type"))
    if values.get("hidden_act", "silu") != "silu":
        raise fields.error("hidden_act", "silu, the only activation of this family", values["hidden_act"])


def _eos_token_ids(folder: Path, fields: ConfigFields) -> tuple[int, ...]:
    """generation_config.json has the last word: chat models end their turns with tokens that config.json omits."""
    path = folder / "generation_config.json"
    generation = read_json_object(path, "a JSON object of generation settings") if is_there(path) else {}
    found = generation.get("eos_token_id", fields.values.get("eos_token_id"))
    tokens = [] if found is None else found if isinstance(found, list) else [found]
    if not all(isinstance(token, int) and not isinstance(token, bool) for token in tokens):
        raise fields.error("eos_token_id", "a token id or a list of them", found)
    return tuple(tokens)
