"""What an arm's engine did and how long it took, from the step log."""

from __future__ import annotations

import numpy as np

from quantgate.metrics.columns import NS_PER_S, floats
from quantgate.metrics.step_sums import pure_steps
from quantgate.report.estimates import Estimate, ratio_of_sums
from quantgate.report.run_view import ArmView

_STRETCHES = 24


def pure_rate(arm: ArmView, tokens: str, other_tokens: str) -> Estimate | None:
    """Tokens per second over the steps that computed nothing else (see `prefill_tok_s`).

    The interval resamples stretches of consecutive steps, since neighbours share the load of their moment.
    """
    pure = pure_steps(arm.steps, tokens, other_tokens)
    count = int(pure.sum())
    if not count:
        return None
    stretches = np.arange(count) * min(_STRETCHES, count) // count
    return ratio_of_sums(floats(arm.steps, tokens)[pure], floats(arm.steps, "duration_ns")[pure] / NS_PER_S, stretches)


def busy_seconds(arm: ArmView) -> float:
    """Seconds in which the engine ran a step."""
    return float(floats(arm.steps, "duration_ns").sum() / NS_PER_S)


def busy_seconds_per_output_token(arm: ArmView) -> float | None:
    """Engine time of the whole replay / output tokens of the whole replay, prompt work included."""
    tokens = float(floats(arm.requests, "output_tokens").sum())
    busy = busy_seconds(arm)
    return busy / tokens if tokens > 0 and busy > 0 else None


def busy_requests_per_hour(arm: ArmView) -> float | None:
    """Requests of this mix that the device would finish in an hour if its engine never idled; failed ones are none."""
    busy = busy_seconds(arm)
    return 3600.0 * arm.finished / busy if busy > 0 and arm.requests.num_rows else None
