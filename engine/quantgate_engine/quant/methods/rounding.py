"""Round to nearest: each weight alone goes to the nearest point of its group's grid."""

from __future__ import annotations

import torch
from torch import Tensor

from quantgate_engine.quant.grouped_codes import GroupedCodes
from quantgate_engine.quant.methods.grid import Grid, GridPoints, find_points


def round_to_nearest(weight: Tensor, grid: Grid, importance: Tensor | None = None) -> GroupedCodes:
    """weight float32 [out, in] -> codes.

    importance: float32 [in], what a squared error of each input's weight costs in the clipping search: the diagonal of
    the Hessian, say. It has no say in the rounding itself. Raises ConfigurationError where groups do not fit the row.
    """
    outputs, inputs = weight.shape
    size = grid.size_in(inputs)
    groups = weight.view(outputs, inputs // size, size)
    points = find_points(groups, grid, None if importance is None else importance.view(1, -1, size))
    return coded(points.codes(groups).view(outputs, inputs), points, grid)


def coded(codes: Tensor, points: GridPoints, grid: Grid, group_of_input: Tensor | None = None) -> GroupedCodes:
    """codes [out, in], whole numbers of any dtype; points of [out, groups]."""
    return GroupedCodes(
        codes=codes.to(torch.uint8),
        scales=points.scales.to(getattr(torch, grid.scale_dtype)),
        zeros=points.zeros.to(torch.uint8),
        bits=grid.bits,
        group_of_input=group_of_input,
    )
