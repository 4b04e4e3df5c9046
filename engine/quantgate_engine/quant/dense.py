"""Linear layers stored as they are multiplied."""

from __future__ import annotations

from torch import Tensor

from quantgate_engine.quant.precision import Precision
from quantgate_kernels.types import DenseWeight


def store_dense(weight: Tensor, precision: Precision) -> DenseWeight:
    """Rounds to the storage dtype; any layer fits."""
    return DenseWeight(weight.to(precision.storage))
