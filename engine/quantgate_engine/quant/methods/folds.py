"""Moving the size of a linear layer's inputs into its weight: exact in real numbers, easier to quantize.

A layer reads x, which the step before it gives as a product with its own weight, element by element (a norm) or row by
row (a linear layer). With x' = x / s and W' = W diag(s) nothing changes: W' x' = W x. The division by s is folded into
the weight of the step before. Used by AWQ and SmoothQuant.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.quant.calibration.layer_weights import (
    ATTENTION_NORM,
    DOWN,
    FFN_NORM,
    GATE,
    KEY,
    OUTPUT,
    QUERY,
    UP,
    VALUE,
    LayerWeights,
)


@dataclass(frozen=True, slots=True)
class Fold:
    """source: the norm or linear layer whose outputs the targets read; each head of values may be read several times.

    Between up and down stands a product with the gate, between values and output the attention's weighted mean: both
    leave a factor per element as it is.
    """

    source: str
    targets: tuple[str, ...]


FOLDS = (
    Fold(ATTENTION_NORM, (QUERY, KEY, VALUE)),
    Fold(VALUE, (OUTPUT,)),
    Fold(FFN_NORM, (GATE, UP)),
    Fold(UP, (DOWN,)),
)
"""In the order in which a layer computes."""


def apply_fold(weights: LayerWeights, fold: Fold, factors: Tensor, head_dim: int) -> None:
    """Multiplies the targets' inputs by `factors` and divides the source's outputs by them.

    factors: float32 [outputs of the source], above 0. Raises ConfigurationError for others.
    """
    if not bool(((factors > 0) & factors.isfinite()).all()):
        raise ConfigurationError(f"The factors between {fold.source} and what reads it are not all above 0 and finite.")
    for name in fold.targets:
        inputs = weights.linears[name].shape[1]
        weights.linears[name] = weights.linears[name] * as_read(factors, inputs, head_dim)
    if fold.source in weights.norms:
        weights.norms[fold.source] = weights.norms[fold.source] / factors
        return
    weights.linears[fold.source] = weights.linears[fold.source] / factors.unsqueeze(1)
    if fold.source in weights.biases:
        weights.biases[fold.source] = weights.biases[fold.source] / factors


def as_read(factors: Tensor, inputs: int, head_dim: int) -> Tensor:
    """-> [inputs]: each value head is read by as many query heads as share it, one beside the other."""
    if len(factors) == inputs:
        return factors
    readers = inputs // len(factors)
    return factors.view(-1, 1, head_dim).expand(-1, readers, -1).reshape(inputs)


def over_readers(statistic: Tensor, outputs: int, head_dim: int) -> Tensor:
    """statistic [inputs of a target] -> [outputs of the source]: the greatest among the heads that read a value."""
    if len(statistic) == outputs:
        return statistic
    return statistic.view(outputs // head_dim, -1, head_dim).amax(dim=1).reshape(outputs)


def outputs_of(weights: LayerWeights, name: str) -> int:
    """Of a norm or a linear layer."""
    return len(weights.norms[name] if name in weights.norms else weights.linears[name])


def greatest_of_inputs(weights: LayerWeights, names: tuple[str, ...]) -> Tensor:
    """float32 [inputs]: the greatest magnitude in each column of these layers together."""
    return torch.stack([weights.linears[name].abs().amax(dim=0) for name in names]).amax(dim=0)
