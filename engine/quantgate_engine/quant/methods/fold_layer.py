"""A recipe's folding, done to one layer before its weights are rounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from quantgate_engine.quant.calibration.layer_weights import LayerWeights
from quantgate_engine.quant.calibration.statistics import InputStatistics
from quantgate_engine.quant.methods.awq import find_awq_factors
from quantgate_engine.quant.methods.folds import FOLDS, Fold, apply_fold, greatest_of_inputs, outputs_of, over_readers
from quantgate_engine.quant.methods.grid import Grid
from quantgate_engine.quant.methods.recipe import Recipe
from quantgate_engine.quant.methods.smoothquant import smoothing_factors


def fold_layer(
    weights: LayerWeights,
    grids: Mapping[str, Grid | None],
    recipe: Recipe,
    statistics: Sequence[InputStatistics],
    head_dim: int,
) -> None:
    """statistics: of what each fold's targets read, in the order of `FOLDS`.

    Factors are all found before any is applied, so that each target's error counts in the units of its outputs. A fold
    none of whose targets is quantized is left out, and so are SmoothQuant's between two linear layers: it is made for
    the outliers behind norms (section 4.2).
    """
    folds = [
        (fold, statistic)
        for fold, statistic in zip(FOLDS, statistics, strict=True)
        if any(grids[name] is not None for name in fold.targets)
        and (recipe.folding == "awq" or fold.source in weights.norms)
    ]
    found = [(fold, _factors(weights, grids, recipe, fold, statistic, head_dim)) for fold, statistic in folds]
    for fold, factors in found:
        apply_fold(weights, fold, factors, head_dim)


def _factors(
    weights: LayerWeights,
    grids: Mapping[str, Grid | None],
    recipe: Recipe,
    fold: Fold,
    statistic: InputStatistics,
    head_dim: int,
) -> Tensor:
    outputs = outputs_of(weights, fold.source)
    if recipe.folding == "smoothquant":
        columns = greatest_of_inputs(weights, fold.targets)
        return smoothing_factors(
            over_readers(statistic.greatest, outputs, head_dim),
            over_readers(columns, outputs, head_dim),
            recipe.smoothquant,
        )
    targets = [(weights.linears[name], grid) for name in fold.targets if (grid := grids[name]) is not None]
    magnitudes = over_readers(statistic.mean_magnitude, outputs, head_dim)
    return find_awq_factors(targets, magnitudes, statistic.hessian.float(), recipe.awq, head_dim)
