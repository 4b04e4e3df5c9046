"""What GPTQ needs of a layer's inputs: in which order columns are rounded, and how each error is made good by the rest.

The squared error of a linear layer's outputs over the calibration rows X is tr(D H D^T), with D the error of its weight
and H = X^T X: the Hessian of every row's loss, up to a factor (Frantar et al. 2022, arXiv:2210.17323, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from quantgate_engine.errors import ConfigurationError

DAMPING_GROWTH = 10.0
LARGEST_DAMPING = 1.0


@dataclass(frozen=True, slots=True)
class HessianFactor:
    """order: int64 [in], the columns as they are rounded; upper: float32 [in, in] in that order, U with H^-1 = U^T U.

    Row i of U, over its own diagonal, says how the error of column i is spread over the columns after it (algorithm 1,
    step 4). importance: float32 [in], the damped diagonal of H in the layer's own order.
    """

    order: Tensor
    upper: Tensor
    importance: Tensor


def factorize(hessian: Tensor, *, damping: float, by_activity: bool) -> HessianFactor:
    """hessian float [in, in], of inputs in the layer's order.

    damping: this share of the mean of the diagonal is added to it, ten times as much where rounding errors leave H
    indefinite all the same. by_activity: columns of the largest diagonal first ("act-order"), while most of the others
    can still make good their errors. An input that never was other than 0 takes no part: its weights are rounded to
    nearest, as calibration says nothing of them and may have missed what makes them matter.
    """
    exact = hessian.to(torch.float64).clone()
    diagonal = exact.diagonal()
    if not bool(diagonal.isfinite().all()):
        raise ConfigurationError("The inputs of a layer overflow on the calibration text; its weights may be damaged.")
    idle = diagonal <= 0
    mean = float(diagonal[~idle].mean()) if bool((~idle).any()) else 1.0
    diagonal[idle] = mean
    order = torch.argsort(diagonal, descending=True, stable=True) if by_activity else torch.arange(len(exact))
    importance = (diagonal + damping * mean).float()
    upper = _inverse_factor(exact[order][:, order], damping, mean)
    return HessianFactor(order=order, upper=upper.float(), importance=importance)


def _inverse_factor(hessian: Tensor, damping: float, mean: float) -> Tensor:
    """float64 [in, in] -> upper triangular U with (H + damping x mean)^-1 = U^T U. Changes H."""
    added = 0.0
    while True:
        hessian.diagonal().add_((damping - added) * mean)
        lower, failed = torch.linalg.cholesky_ex(hessian)
        if not int(failed):
            upper, failed = torch.linalg.cholesky_ex(torch.cholesky_inverse(lower), upper=True)
            if not int(failed):
                inverse_factor: Tensor = upper
                return inverse_factor
        if damping >= LARGEST_DAMPING:
            raise ConfigurationError("The Hessian of a layer has no inverse; calibrate on more text.")
        added, damping = damping, max(damping * DAMPING_GROWTH, 1e-4)
