"""The dense decoder family (Llama, SmolLM2, Mistral, Qwen2, Qwen3), read from a Hugging Face config.json."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quantgate_engine.errors import ModelError
from quantgate_engine.model.checkpoint_check import read_json_object

SUPPORTED_MODEL_TYPES = ("llama", "mistral", "qwen2", "qwen3")
DEFAULT_ROPE_THETA = 10_000.0


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """Shapes and constants of one decoder. Biases and query/key norms are there where the checkpoint has them."""

    model_type: str
    vocab_size: int
    hidden_size: int
    ffn_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rms_norm_eps: float
    rope_theta: float
    max_position_embeddings: int
    tied_head: bool
    eos_token_ids: tuple[int, ...]

    @property
    def query_key_value_size(self) -> int:
        return (self.num_heads + 2 * self.num_kv_heads) * self.head_dim

    def linear_inputs(self) -> dict[str, int]:
        """Number of inputs of each kind of linear layer."""
        hidden = dict.fromkeys(("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"), self.hidden_size)
        return {**hidden, "o_proj": self.num_heads * self.head_dim, "down_proj": self.ffn_size}

    @property
    def linear_parameters_per_layer(self) -> int:
        """Weights of one layer's projections; biases, norms and the head are not among them."""
        attention = self.hidden_size * (self.query_key_value_size + self.num_heads * self.head_dim)
        return attention + 3 * self.hidden_size * self.ffn_size

    def kv_bytes_per_token(self, element_size: int) -> int:
        """layers x key/value heads x head dimension x 2 (keys and values) x bytes of an element."""
        return self.num_layers * self.num_kv_heads * self.head_dim * 2 * element_size


def read_decoder_config(folder: Path) -> DecoderConfig:
    """Raises ModelError with the file and the field where the model is none that the engine serves."""
    path = folder / "config.json"
    fields = _Fields(path, read_json_object(path, "a model folder needs one that names its architecture"))
    _refuse_what_is_not_served(fields)
    num_heads = fields.integer("num_attention_heads")
    num_kv_heads = fields.integer("num_key_value_heads", default=num_heads)
    if num_heads % num_kv_heads:
        raise fields.error("num_key_value_heads", f"a divisor of num_attention_heads ({num_heads})", num_kv_heads)
    hidden_size = fields.integer("hidden_size")
    return DecoderConfig(
        model_type=fields.values["model_type"],
        vocab_size=fields.integer("vocab_size"),
        hidden_size=hidden_size,
        ffn_size=fields.integer("intermediate_size"),
        num_layers=fields.integer("num_hidden_layers"),
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=fields.integer("head_dim", default=hidden_size // num_heads),
        rms_norm_eps=fields.number("rms_norm_eps", default=1e-6),
        rope_theta=_rope_theta(fields),
        max_position_embeddings=fields.integer("max_position_embeddings"),
        tied_head=bool(fields.values.get("tie_word_embeddings", False)),
        eos_token_ids=_eos_token_ids(folder, fields),
    )


@dataclass(frozen=True, slots=True)
class _Fields:
    path: Path
    values: dict[str, Any]

    def error(self, field: str, expected: str, found: object) -> ModelError:
        return ModelError(f"{self.path}, field {field}: expected {expected}, found {found!r}.")

    def integer(self, field: str, default: int | None = None) -> int:
        found = self.values.get(field)
        value = default if found is None else found
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise self.error(field, "a positive integer", found)
        return value

    def number(self, field: str, default: float) -> float:
        found = self.values.get(field)
        value = default if found is None else found
        if not isinstance(value, (int, float)) or isinstance(value, bool) or value <= 0:
            raise self.error(field, "a positive number", found)
        return float(value)


def _refuse_what_is_not_served(fields: _Fields) -> None:
    values = fields.values
    if values.get("model_type") not in SUPPORTED_MODEL_TYPES:
        raise fields.error("model_type", f"one of {', '.join(SUPPORTED_MODEL_TYPES)}", values.get("model_type"))
    if values.get("hidden_act", "silu") != "silu":
        raise fields.error("hidden_act", "silu, the only activation of this family", values["hidden_act"])
    # Qwen2 states a window beside the switch that leaves it unused.
    if values.get("sliding_window") is not None and values.get("use_sliding_window", True):
        raise fields.error(
            "sliding_window", "null, as the engine attends over the whole context", values["sliding_window"]
        )
    if values.get("quantization_config") is not None:
        raise fields.error("quantization_config", "none, as schemes are applied to 16-bit or 32-bit weights", "one")


def _rope_theta(fields: _Fields) -> float:
    """transformers 5 writes `rope_parameters`, older versions `rope_theta` and `rope_scaling`."""
    for name in ("rope_parameters", "rope_scaling"):
        rope = fields.values.get(name)
        if rope is None:
            continue
        if not isinstance(rope, dict):
            raise fields.error(name, "an object", rope)
        kind = rope.get("rope_type", rope.get("type", "default"))
        if kind != "default":
            raise fields.error(f"{name}.rope_type", "default, as scaled rotary embeddings are not served", kind)
        if "rope_theta" in rope:
            return _Fields(fields.path, rope).number("rope_theta", DEFAULT_ROPE_THETA)
    return fields.number("rope_theta", DEFAULT_ROPE_THETA)


def _eos_token_ids(folder: Path, fields: _Fields) -> tuple[int, ...]:
    """generation_config.json has the last word: chat models end their turns with tokens that config.json omits."""
    path = folder / "generation_config.json"
    generation = read_json_object(path, "a JSON object of generation settings") if path.is_file() else {}
    found = generation.get("eos_token_id", fields.values.get("eos_token_id"))
    tokens = [] if found is None else found if isinstance(found, list) else [found]
    if not all(isinstance(token, int) and not isinstance(token, bool) for token in tokens):
        raise fields.error("eos_token_id", "a token id or a list of them", found)
    return tuple(tokens)
