"""What an error of a weight costs: the squared error of the layer's outputs over all calibration rows."""

from __future__ import annotations

from torch import Tensor


def output_error(difference: Tensor, hessian: Tensor) -> float:
    """tr(D H D^T), with D float32 [out, in] and H = X^T X float32 [in, in]: the sum over rows x of |D x|^2.

    Rounding may leave a sum of next to nothing a little below 0, which no such error is.
    """
    return max(float(((difference @ hessian) * difference).sum()), 0.0)
