"""GPTQ (Frantar et al. 2022, arXiv:2210.17323): columns are rounded one after another, and what each loses is made good
by those that are still to come, as the inputs' correlations allow."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.quant.grouped_codes import GroupedCodes
from quantgate_engine.quant.methods.grid import Grid, GridPoints, find_points
from quantgate_engine.quant.methods.hessian import HessianFactor
from quantgate_engine.quant.methods.rounding import coded

LEAST_BLOCK = 128


@dataclass(frozen=True, slots=True)
class GptqOptions:
    """damping, act_order: see `factorize`. The paper damps by 0.01; but calibration text is not what models will read.

    static_groups: the points of every group are found before the first column is rounded, so that inputs keep their
    groups in any order; otherwise when the group begins, of weights that already make good others' errors, and groups
    are runs of the order in which columns are rounded.
    """

    damping: float = 0.05
    act_order: bool = True
    static_groups: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.damping <= 1:
            raise ConfigurationError(f"GptqOptions.damping is {self.damping}; expected a share above 0, 1 at most.")


def quantize_gptq(weight: Tensor, factor: HessianFactor, grid: Grid, *, static_groups: bool) -> GroupedCodes:
    """weight float32 [out, in] -> codes in the layer's order of inputs.

    `group_of_input` is given where the inputs of a group do not stand together: under an order of the factor's without
    static groups. Updates are lazy: within a block of columns at once, beyond it in one product (section 3.3).
    """
    outputs, inputs = weight.shape
    size = grid.size_in(inputs)
    points = _static_points(weight, factor.importance, size, grid) if static_groups else []
    group_of = factor.order // size if static_groups else torch.arange(inputs) // size
    group_at: list[int] = group_of.tolist()
    # Columns are rows here, which lie in one piece of memory.
    columns = weight.t()[factor.order].contiguous()
    importance = factor.importance[factor.order]
    codes = torch.empty_like(columns)
    # A whole number of groups, so that a group's columns are up to date when its points are found; a whole row is, at
    # the start.
    block = LEAST_BLOCK if size >= inputs else -(-LEAST_BLOCK // size) * size
    for start in range(0, inputs, block):
        stop = min(start + block, inputs)
        spread = factor.upper[start:stop, start:stop]
        errors = torch.empty(stop - start, outputs)
        for row, index in enumerate(range(start, stop)):
            if not static_groups and index % size == 0:
                group = slice(index, index + size)
                points.append(find_points(columns[group].t(), grid, importance[group]))
            own = points[group_at[index]]
            codes[index] = own.codes(columns[index].unsqueeze(-1)).squeeze(-1)
            lost = columns[index] - (codes[index] - own.zeros) * own.scales
            torch.div(lost, spread[row, row], out=errors[row])
            columns[index:stop].addr_(spread[row, row:], errors[row], alpha=-1)
        columns[stop:].addmm_(factor.upper[start:stop, stop:].t(), errors, alpha=-1)
    groups = _in_order_of_inputs(group_of, factor)
    stand_together = bool((groups == torch.arange(inputs) // size).all())
    restored = _in_order_of_inputs(codes, factor).t().contiguous()
    return coded(restored, _joined(points), grid, None if stand_together else groups)


def _in_order_of_inputs(rounded: Tensor, factor: HessianFactor) -> Tensor:
    """rounded: [in, ...] in the order in which columns were rounded."""
    restored = torch.empty_like(rounded)
    restored[factor.order] = rounded
    return restored


def _static_points(weight: Tensor, importance: Tensor, size: int, grid: Grid) -> list[GridPoints]:
    """Of every group, as the weights stand before any rounding."""
    points = find_points(weight.view(len(weight), -1, size), grid, importance.view(1, -1, size))
    each = zip(points.scales.t().contiguous(), points.zeros.t().contiguous(), strict=True)
    return [GridPoints(scales, zeros, points.largest_code) for scales, zeros in each]


def _joined(points: list[GridPoints]) -> GridPoints:
    return GridPoints(
        scales=torch.stack([each.scales for each in points], dim=1),
        zeros=torch.stack([each.zeros for each in points], dim=1),
        largest_code=points[0].largest_code,
    )
