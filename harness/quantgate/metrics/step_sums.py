"""Sums and ratios over the step table that several metrics share."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quantgate.metrics.columns import NS_PER_S, floats


def ratio(numerator: float, denominator: float) -> float | None:
    """numerator / denominator; None where there is nothing to divide by."""
    return numerator / denominator if denominator > 0 else None


def pure_steps(steps: pa.Table, tokens: str, other_tokens: str) -> NDArray[np.bool_]:
    """Steps that computed `tokens` and none of `other_tokens`: only there a step's time belongs to one kind of work."""
    return np.asarray((floats(steps, tokens) > 0) & (floats(steps, other_tokens) == 0))


def pure_token_rate(steps: pa.Table, tokens: str, other_tokens: str) -> float | None:
    """Tokens of the pure steps / seconds of the pure steps."""
    pure = pure_steps(steps, tokens, other_tokens)
    return ratio(float(floats(steps, tokens)[pure].sum()), float(floats(steps, "duration_ns")[pure].sum()) / NS_PER_S)


def pure_token_share(steps: pa.Table, tokens: str, other_tokens: str) -> float | None:
    """Tokens of the pure steps / all tokens of that kind: how much of the work the rate speaks for."""
    pure = pure_steps(steps, tokens, other_tokens)
    return ratio(float(floats(steps, tokens)[pure].sum()), float(floats(steps, tokens).sum()))


def mean_where_positive(steps: pa.Table, name: str) -> float | None:
    """Mean of a column over the steps in which it is above 0."""
    values = floats(steps, name)
    return ratio(float(values.sum()), float((values > 0).sum()))
