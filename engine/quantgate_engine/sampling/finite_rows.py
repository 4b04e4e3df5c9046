"""Rows that no token can be told from: arithmetic that overflowed left NaN or infinities in them."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from quantgate_engine.executor.base import NoToken

NOT_FINITE = NoToken(
    "the model's arithmetic overflowed on it and gave logits that are NaN or infinite, of which no token can be drawn; "
    "another prompt or a scheme of wider numbers, such as fp32, may not"
)


def rows_not_finite(logits: Tensor) -> list[int]:
    """Of logits [R, vocab]. One sum over all of them tells where there is none, as good as always."""
    if math.isfinite(logits.sum()):
        return []
    return _places(logits.isfinite().all(dim=-1))


def rows_beyond_norm(hidden: Tensor) -> list[int]:
    """Of hidden [R, hidden]: rows whose length is not finite in float32, so that the final norm makes 0 of them."""
    if math.isfinite(torch.linalg.vector_norm(hidden, dtype=torch.float32)):
        return []
    return _places(torch.linalg.vector_norm(hidden, dim=-1, dtype=torch.float32).isfinite())


def _places(is_finite: Tensor) -> list[int]:
    return [place for place, finite in enumerate(is_finite.tolist()) if not finite]
