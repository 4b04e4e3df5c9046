"""Layer by layer through a model: calibration text goes in, quantized layers come out.

Each layer reads what the quantized layers below it give, and each linear layer what the quantized ones before it in
its own layer give, so that later weights are fitted to the errors of earlier ones. In memory stand one layer, the
hidden states of the text, and the widest activations of one layer.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from quantgate_engine.model.checkpoint import Checkpoint
from quantgate_engine.model.config import DecoderConfig
from quantgate_engine.quant.calibration.float_layer import STAGES, FloatLayer
from quantgate_engine.quant.calibration.layer_rounding import LayerRounding
from quantgate_engine.quant.calibration.layer_weights import DOWN, OUTPUT, LayerWeights, layer_prefix, read_layer
from quantgate_engine.quant.calibration.quantized_layer import QuantizedLayer
from quantgate_engine.quant.calibration.statistics import InputStatistics
from quantgate_engine.quant.methods.fold_layer import fold_layer
from quantgate_engine.quant.methods.recipe import Recipe

ROWS_AT_ONCE = 4096
"""Tokens that are computed together: enough for products at full speed, few enough for any memory."""

OnLinear = Callable[[str], None]


def embedded(checkpoint: Checkpoint, config: DecoderConfig, token_ids: Tensor) -> Tensor:
    """token_ids int64 [sequences, tokens] -> float32 [sequences, tokens, hidden]: what the first layer reads."""
    table = checkpoint.take("model.embed_tokens.weight", (config.vocab_size, config.hidden_size))
    return table[token_ids]


class CalibrationWalk:
    """Stands before one layer with the text's hidden states; a layer is quantized, or replayed as it was quantized.

    hidden: float32 [sequences, tokens, hidden], what layer `next_layer` reads: `embedded` text, or the `hidden` of
    another walk that had come as far. Changed in place.
    A layer that was broken off by an error leaves them half changed: go on from those that were kept before it.
    """

    def __init__(
        self, checkpoint: Checkpoint, config: DecoderConfig, recipe: Recipe, hidden: Tensor, next_layer: int = 0
    ) -> None:
        self.hidden = hidden
        self.next_layer = next_layer
        self._checkpoint = checkpoint
        self._config = config
        self._recipe = recipe

    def quantize_next(self, on_linear: OnLinear = lambda _name: None) -> QuantizedLayer:
        """Quantizes a layer and moves on behind it. on_linear: told the name of each linear layer when it is done."""
        with torch.inference_mode():
            weights, layer = self._read()
            rounding = LayerRounding(weights, self._recipe, layer_prefix(self.next_layer))
            if self._recipe.folding != "none":
                fold_layer(weights, rounding.grids, self._recipe, self._float_statistics(layer), self._config.head_dim)
            for stage in STAGES:
                statistics = InputStatistics(weights.linears[stage.linears[0]].shape[1])
                kept = []
                for part in self._parts():
                    inputs = stage.inputs(layer, part)
                    statistics.add(inputs)
                    if stage.adds_to_hidden:
                        kept.append(inputs)
                for name in rounding.round(stage.linears, statistics.hessian):
                    on_linear(name)
                if stage.adds_to_hidden:
                    for part, inputs in zip(self._parts(), kept, strict=True):
                        part += layer.linear(inputs, stage.linears[0])
        self.next_layer += 1
        return rounding.finished(self.next_layer - 1)

    def replay_next(self, stored: QuantizedLayer) -> None:
        """Moves on behind a layer that was quantized before, under the same recipe and text."""
        with torch.inference_mode():
            weights, layer = self._read()
            stored.put_into(weights)
            for part in self._parts():
                part += layer.linear(layer.attended(part), OUTPUT)
                part += layer.linear(layer.gated(part), DOWN)
        self.next_layer += 1

    def _read(self) -> tuple[LayerWeights, FloatLayer]:
        weights = read_layer(self._checkpoint, self._config, self.next_layer)
        return weights, FloatLayer(self._config, weights, self.next_layer, self.hidden.shape[1])

    def _float_statistics(self, layer: FloatLayer) -> tuple[InputStatistics, ...]:
        """Of each stage, as the layer's own float weights would have it; the hidden states stay where they are."""
        sizes = [layer.weights.linears[stage.linears[0]].shape[1] for stage in STAGES]
        statistics = tuple(map(InputStatistics, sizes))
        for part in self._parts():
            hidden = part
            for stage, statistic in zip(STAGES, statistics, strict=True):
                inputs = stage.inputs(layer, hidden)
                statistic.add(inputs)
                if stage.adds_to_hidden:
                    hidden = hidden + layer.linear(inputs, stage.linears[0])
        return statistics

    def _parts(self) -> tuple[Tensor, ...]:
        """Views of the hidden states, some sequences each."""
        return torch.split(self.hidden, max(1, ROWS_AT_ONCE // self.hidden.shape[1]))


def quantize_without_text(
    checkpoint: Checkpoint, config: DecoderConfig, recipe: Recipe, index: int, on_linear: OnLinear = lambda _name: None
) -> QuantizedLayer:
    """A layer under a recipe that needs none (`Recipe.needs_text`)."""
    with torch.inference_mode():
        rounding = LayerRounding(read_layer(checkpoint, config, index), recipe, layer_prefix(index))
        for stage in STAGES:
            for name in rounding.round(stage.linears, None):
                on_linear(name)
    return rounding.finished(index)
