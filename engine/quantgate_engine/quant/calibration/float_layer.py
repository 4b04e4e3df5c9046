"""One decoder layer computed in float32 on whole sequences, in the stages between which its weights are quantized.

The same arithmetic as `model/decoder.py`, without cache and batches: every sequence is a prompt of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from quantgate_engine.model.config import DecoderConfig
from quantgate_engine.model.rope import RotaryTable
from quantgate_engine.quant.calibration.layer_weights import (
    ATTENTION_NORM,
    DOWN,
    FFN_NORM,
    GATE,
    KEY,
    KEY_NORM,
    OUTPUT,
    QUERY,
    QUERY_NORM,
    UP,
    VALUE,
    LayerWeights,
)


class FloatLayer:
    """Tensors are [sequences, tokens, size]; `weights` may change between two calls."""

    def __init__(self, config: DecoderConfig, weights: LayerWeights, index: int, tokens: int) -> None:
        self._config = config
        self.weights = weights
        rotation = config.rope.rotation(config.head_dim, config.max_position_embeddings)
        angles = RotaryTable(rotation, tokens, torch.device("cpu")).angles
        self._cos, self._sin = angles.cosines, angles.sines
        self._mask = _window_mask(tokens, config.windows[index])

    def attention_inputs(self, hidden: Tensor) -> Tensor:
        """What queries, keys and values are made of."""
        return self._norm(hidden, ATTENTION_NORM)

    def attended(self, hidden: Tensor) -> Tensor:
        """What the attention's output layer reads."""
        config, inputs = self._config, self.attention_inputs(hidden)
        query, key, value = (self._heads(self.linear(inputs, name)) for name in (QUERY, KEY, VALUE))
        if config.has_head_norm:
            query, key = self._norm(query, QUERY_NORM), self._norm(key, KEY_NORM)
        query, key = self._rotated(query), self._rotated(key)
        attended = F.scaled_dot_product_attention(
            query, key, value, attn_mask=self._mask, is_causal=self._mask is None, enable_gqa=True
        )
        return attended.transpose(1, 2).flatten(2)

    def ffn_inputs(self, hidden: Tensor) -> Tensor:
        """hidden: with the attention's output added. What gate and up read."""
        return self._norm(hidden, FFN_NORM)

    def gated(self, hidden: Tensor) -> Tensor:
        """hidden: with the attention's output added. What the down layer reads."""
        inputs = self.ffn_inputs(hidden)
        return F.silu(self.linear(inputs, GATE)).mul_(self.linear(inputs, UP))

    def linear(self, inputs: Tensor, name: str) -> Tensor:
        """The product with a linear layer's weight, its bias added."""
        return F.linear(inputs, self.weights.linears[name], self.weights.biases.get(name))

    def _norm(self, values: Tensor, name: str) -> Tensor:
        weight = self.weights.norms[name]
        return F.rms_norm(values, (values.shape[-1],), weight, self._config.rms_norm_eps)

    def _heads(self, values: Tensor) -> Tensor:
        """[sequences, tokens, heads * head_dim] -> [sequences, heads, tokens, head_dim]."""
        return values.view(*values.shape[:2], -1, self._config.head_dim).transpose(1, 2)

    def _rotated(self, heads: Tensor) -> Tensor:
        first, second = heads.chunk(2, dim=-1)
        return heads * self._cos + torch.cat((-second, first), dim=-1) * self._sin


def _window_mask(tokens: int, window: int | None) -> Tensor | None:
    """None where a plain causal mask does."""
    if window is None or window >= tokens:
        return None
    positions = torch.arange(tokens)
    distance = positions.unsqueeze(1) - positions
    return (distance >= 0) & (distance < window)


@dataclass(frozen=True, slots=True)
class Stage:
    """linears: the layers that read the same input; inputs: what it is, from the hidden states before the stage.

    adds_to_hidden: the one layer's output is the end of a branch, and is added to the hidden states.
    """

    linears: tuple[str, ...]
    inputs: Callable[[FloatLayer, Tensor], Tensor]
    adds_to_hidden: bool = False


STAGES = (
    Stage((QUERY, KEY, VALUE), FloatLayer.attention_inputs),
    Stage((OUTPUT,), FloatLayer.attended, adds_to_hidden=True),
    Stage((GATE, UP), FloatLayer.ffn_inputs),
    Stage((DOWN,), FloatLayer.gated, adds_to_hidden=True),
)
"""In the order in which a layer computes."""
