"""Step costs by least squares over measured steps."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import nnls

from quantgate_engine.executor.simulated import StepCosts, StepShape


@dataclass(slots=True)
class StepTimes:
    """What was measured: the shapes and times of steps, and the blocks and time of swaps."""

    shapes: list[StepShape] = field(default_factory=list)
    step_ns: list[int] = field(default_factory=list)
    swapped_blocks: int = 0
    swap_ns: int = 0


@dataclass(frozen=True, slots=True)
class CostFit:
    """costs: the solution; r_squared, median_error: of the steps' times, as `practice_costs.py` says."""

    costs: StepCosts
    steps: int
    r_squared: float
    median_error: float


def fit_costs(times: StepTimes) -> CostFit:
    """Non-negative least squares of step times over shapes, weighted by one over each time."""
    parts = np.asarray([(1, *shape) for shape in times.shapes], dtype=np.float64)
    measured = np.asarray(times.step_ns, dtype=np.float64)
    # The parts reach from 1 to millions: scaled, so that the solver's tolerances mean the same for each.
    scale = np.maximum(parts.max(axis=0), 1.0)
    scaled_costs, _ = nnls(parts / scale / measured[:, None], np.ones(len(measured)))
    costs = scaled_costs / scale
    predicted = parts @ costs
    unexplained = float(((measured - predicted) ** 2).sum())
    spread = float(((measured - measured.mean()) ** 2).sum())
    base, per_prefill_token, per_prefill_pair, per_decode_request, per_decode_context_token = costs
    return CostFit(
        costs=StepCosts(
            base_ns=round(base),
            per_prefill_token_ns=round(per_prefill_token),
            per_decode_request_ns=round(per_decode_request),
            per_swapped_block_ns=round(times.swap_ns / times.swapped_blocks) if times.swapped_blocks else 0,
            per_prefill_pair_ns=float(per_prefill_pair),
            per_decode_context_token_ns=float(per_decode_context_token),
        ),
        steps=len(measured),
        r_squared=1 - unexplained / spread,
        median_error=float(np.median(np.abs(predicted - measured) / measured)),
    )
