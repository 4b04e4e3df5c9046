"""Where the points of a quantized weight lie: a scale and a zero for each group of a row's inputs.

Symmetric: scale = max|w| / (2**(bits - 1) - 1), zero = 2**(bits - 1); so defined by `int4_group` and `int8_codes` too.
Asymmetric: scale = (max(w, 0) - min(w, 0)) / (2**bits - 1), zero = round(-min(w, 0) / scale), an integer, so that 0 is
always a point (Jacob et al. 2018, arXiv:1712.05877, section 2.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.quant.grouped_codes import CODE_BITS, middle_code
from quantgate_engine.quant.methods.clipping import ClipSearch

SCALE_DTYPES = ("float16", "bfloat16", "float32")


@dataclass(frozen=True, slots=True)
class Grid:
    """group_size: inputs that share a scale; None for a whole row. clip: looks for scales below those of the extremes.

    Scales are rounded to `scale_dtype` before any code is chosen, so that this rounding biases no group.
    """

    bits: int = 4
    group_size: int | None = 64
    symmetric: bool = True
    scale_dtype: str = "float16"
    clip: ClipSearch | None = None

    def __post_init__(self) -> None:
        if self.bits not in CODE_BITS:
            raise ConfigurationError(f"Grid.bits is {self.bits}; expected one of {', '.join(map(str, CODE_BITS))}.")
        if self.group_size is not None and self.group_size < 1:
            raise ConfigurationError(
                f"Grid.group_size is {self.group_size}; expected 1 or more, or none for whole rows."
            )
        if self.scale_dtype not in SCALE_DTYPES:
            raise ConfigurationError(
                f"Grid.scale_dtype is {self.scale_dtype!r}; expected one of {', '.join(SCALE_DTYPES)}."
            )

    @property
    def largest_code(self) -> int:
        return (1 << self.bits) - 1

    def size_in(self, inputs: int) -> int:
        """Inputs of a group in rows of so many. Raises ConfigurationError where they do not divide into groups."""
        size = inputs if self.group_size is None else self.group_size
        if inputs % size:
            raise ConfigurationError(f"{inputs} inputs do not divide into groups of {size}.")
        return size


@dataclass(frozen=True, slots=True)
class GridPoints:
    """The points of some groups: scales float32 [...] that the grid's dtype can hold; zeros float32 [...], whole."""

    scales: Tensor
    zeros: Tensor
    largest_code: int

    def codes(self, values: Tensor) -> Tensor:
        """values float32 [..., size] -> the code of the nearest point, float32, half to even."""
        steps = (values / self.scales.unsqueeze(-1)).round_().add_(self.zeros.unsqueeze(-1))
        return steps.clamp_(0, self.largest_code)

    def nearest(self, values: Tensor) -> Tensor:
        """values float32 [..., size] -> the nearest points."""
        return self.codes(values).sub_(self.zeros.unsqueeze(-1)).mul_(self.scales.unsqueeze(-1))


def find_points(groups: Tensor, grid: Grid, importance: Tensor | None = None) -> GridPoints:
    """groups float32 [..., size] -> a scale and a zero for each.

    importance: float32, broadcast against `groups`: what a squared error of each input weighs in the clipping search.
    Raises ConfigurationError where a scale is too large for its dtype, or a weight is not finite.
    """
    low, high = _extremes(groups, symmetric=grid.symmetric)
    best = _points(low, high, grid)
    if grid.clip is None:
        return best
    least = _squared_error(groups, best, importance)
    for ratio in grid.clip.ratios():
        points = _points(low * ratio, high * ratio, grid)
        error = _squared_error(groups, points, importance)
        better = error < least
        least = torch.where(better, error, least)
        best = GridPoints(
            scales=torch.where(better, points.scales, best.scales),
            zeros=torch.where(better, points.zeros, best.zeros),
            largest_code=best.largest_code,
        )
    return best


def _extremes(groups: Tensor, *, symmetric: bool) -> tuple[Tensor, Tensor]:
    if symmetric:
        greatest = groups.abs().amax(dim=-1)
        return -greatest, greatest
    return groups.amin(dim=-1).clamp_(max=0), groups.amax(dim=-1).clamp_(min=0)


def _points(low: Tensor, high: Tensor, grid: Grid) -> GridPoints:
    """A group of zeros, or of values that the scale's dtype rounds to zero, gets scale 1."""
    # The number of steps from 0 to the extreme, or from one extreme to the other.
    scales = high / (middle_code(grid.bits) - 1) if grid.symmetric else (high - low) / grid.largest_code
    scales = scales.to(getattr(torch, grid.scale_dtype)).float()
    if not bool(scales.isfinite().all()):
        raise ConfigurationError(
            f"A scale does not fit {grid.scale_dtype}: the weights of its group reach {float(high.max()):.3g}; "
            "use scales of float32 or bfloat16, or mend the weights."
        )
    scales = torch.where(scales == 0, torch.ones_like(scales), scales)
    if grid.symmetric:
        zeros = torch.full_like(scales, middle_code(grid.bits))
    else:
        zeros = (-low / scales).round_().clamp_(0, grid.largest_code)
    return GridPoints(scales=scales, zeros=zeros, largest_code=grid.largest_code)


def _squared_error(groups: Tensor, points: GridPoints, importance: Tensor | None) -> Tensor:
    squares = points.nearest(groups).sub_(groups).square_()
    return (squares if importance is None else squares.mul_(importance)).sum(dim=-1)
