"""AWQ (Lin et al. 2023, arXiv:2306.00978): weights that meet large activations are made larger, so that the grid is
finer for them; what they are multiplied by is divided out before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.quant.methods.folds import as_read
from quantgate_engine.quant.methods.grid import Grid
from quantgate_engine.quant.methods.output_error import output_error
from quantgate_engine.quant.methods.rounding import round_to_nearest

LEAST_MAGNITUDE = 1e-4


@dataclass(frozen=True, slots=True)
class AwqOptions:
    """steps: exponents that are tried, evenly spaced from 0 (no change) to below 1."""

    steps: int = 20

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ConfigurationError(f"AwqOptions.steps is {self.steps}; expected 1 or more.")


def find_awq_factors(
    targets: Sequence[tuple[Tensor, Grid]],
    magnitudes: Tensor,
    hessian: Tensor,
    options: AwqOptions,
    head_dim: int,
) -> Tensor:
    """-> float32 [outputs of the source], for `apply_fold`.

    targets: weight [out, in] and grid of each layer that reads the inputs; magnitudes: the mean |x| of each output of
    the source; hessian: float32 [in, in] of the inputs. Factors are magnitudes**a, over the geometric mean of the
    largest and the smallest (section 3.2, and the authors' code), with the a whose rounding to nearest costs the least:
    the squared error of the targets' outputs, which the paper takes of the whole block. Like there, what can be clipped
    is looked for when the factors are known.
    """
    known = magnitudes.clamp(min=LEAST_MAGNITUDE)
    best, least = torch.ones_like(known), float("inf")
    for step in range(options.steps):
        factors = known ** (step / options.steps)
        factors = factors / (factors.max() * factors.min()).sqrt()
        error = sum(_error_with(weight, grid, factors, hessian, head_dim) for weight, grid in targets)
        if error < least:
            best, least = factors, error
    return best


def _error_with(weight: Tensor, grid: Grid, factors: Tensor, hessian: Tensor, head_dim: int) -> float:
    read = as_read(factors, weight.shape[1], head_dim)
    rounded = round_to_nearest(weight * read, replace(grid, clip=None)).dequantize() / read
    return output_error(weight - rounded, hessian)
