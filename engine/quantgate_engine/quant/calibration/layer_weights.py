"""One decoder layer in float32, by the names that its checkpoint uses, open to changes."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from quantgate_engine.model.checkpoint import Checkpoint
from quantgate_engine.model.config import DecoderConfig

ATTENTION_NORM, FFN_NORM = "input_layernorm", "post_attention_layernorm"
QUERY, KEY, VALUE, OUTPUT = (f"self_attn.{part}_proj" for part in ("q", "k", "v", "o"))
QUERY_NORM, KEY_NORM = "self_attn.q_norm", "self_attn.k_norm"
GATE, UP, DOWN = (f"mlp.{part}_proj" for part in ("gate", "up", "down"))


@dataclass(slots=True)
class LayerWeights:
    """linears: name -> [out, in]; biases: name -> [out], of those that have one; norms: name -> [size].

    Names are those behind `model.layers.N.`, without `.weight` and `.bias`.
    """

    linears: dict[str, Tensor]
    biases: dict[str, Tensor]
    norms: dict[str, Tensor]

    def named(self) -> dict[str, Tensor]:
        """Every tensor by its name behind `model.layers.N.`."""
        weights = {f"{name}.weight": tensor for name, tensor in (self.linears | self.norms).items()}
        return weights | {f"{name}.bias": tensor for name, tensor in self.biases.items()}


def layer_prefix(index: int) -> str:
    return f"model.layers.{index}."


def linear_inputs(config: DecoderConfig) -> dict[str, int]:
    """Whole name of every linear layer -> its number of inputs."""
    inputs = config.linear_inputs()
    kinds = (QUERY, KEY, VALUE, OUTPUT, GATE, UP, DOWN)
    return {layer_prefix(index) + name: inputs[_kind(name)] for index in range(config.num_layers) for name in kinds}


def read_layer(checkpoint: Checkpoint, config: DecoderConfig, index: int) -> LayerWeights:
    """Raises ModelError for a missing or misshapen tensor."""
    prefix = layer_prefix(index)
    queries, keys = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
    hidden, ffn = config.hidden_size, config.ffn_size
    outputs = {QUERY: queries, KEY: keys, VALUE: keys, OUTPUT: hidden, GATE: ffn, UP: ffn, DOWN: hidden}
    inputs = config.linear_inputs()
    norms = {ATTENTION_NORM: hidden, FFN_NORM: hidden}
    if config.has_head_norm:
        norms |= {QUERY_NORM: config.head_dim, KEY_NORM: config.head_dim}
    return LayerWeights(
        linears={
            name: checkpoint.take(f"{prefix}{name}.weight", (size, inputs[_kind(name)]))
            for name, size in outputs.items()
        },
        biases={
            name: checkpoint.take(f"{prefix}{name}.bias", (size,))
            for name, size in outputs.items()
            if _kind(name) in config.biased
        },
        norms={name: checkpoint.take(f"{prefix}{name}.weight", (size,)) for name, size in norms.items()},
    )


def _kind(name: str) -> str:
    return name.rpartition(".")[2]
