"""GPTQ as the paper's equations 2 and 3 have it, one column at a time in float64: slow, and written apart from ours.

After each column the inverse Hessian of those that are left is found by eliminating it from the whole inverse
(equation 3), with no Cholesky factor and no blocks.
"""

from __future__ import annotations

import torch
from torch import Tensor

from quantgate_engine.quant.methods.grid import Grid, find_points


def gptq_by_hand(
    weight: Tensor, hessian: Tensor, grid: Grid, *, damping: float, act_order: bool, static_groups: bool
) -> Tensor:
    """-> float32 [out, in], what the codes stand for."""
    outputs, inputs = weight.shape
    size = inputs if grid.group_size is None else grid.group_size
    damped = hessian.double() + damping * hessian.double().diagonal().mean() * torch.eye(inputs, dtype=torch.float64)
    diagonal = damped.diagonal().float()
    order = sorted(range(inputs), key=lambda column: -float(hessian[column, column])) if act_order else range(inputs)
    inverse = torch.linalg.inv(damped)
    left, result = weight.double().clone(), torch.zeros(outputs, inputs)
    spans = [slice(start, start + size) for start in range(0, inputs, size)]
    static = [find_points(weight[:, span], grid, diagonal[span]) for span in spans]
    points = static[0]
    for step, column in enumerate(order):
        if static_groups:
            points = static[column // size]
        elif step % size == 0:
            members = list(order)[step : step + size]
            points = find_points(left[:, members].float(), grid, diagonal[members])
        result[:, column] = points.nearest(left[:, column : column + 1].float()).squeeze(1)
        error = (left[:, column] - result[:, column].double()) / inverse[column, column]
        left -= torch.outer(error, inverse[column])
        inverse = inverse - torch.outer(inverse[:, column], inverse[column]) / inverse[column, column]
    return result
