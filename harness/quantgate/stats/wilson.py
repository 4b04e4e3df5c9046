"""Wilson's score interval of one proportion."""

from __future__ import annotations

import math

from scipy.stats import norm

from quantgate.stats.interval import Interval


def wilson_interval(successes: float, n: float, confidence: float = 0.95) -> Interval:
    """(p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n), p = successes / n.

    Source: E. B. Wilson, Journal of the American Statistical Association 22 (1927) 209-212.
    Raises ValueError where n <= 0 or the successes do not lie in 0..n.
    """
    if n <= 0 or not 0 <= successes <= n:
        raise ValueError(f"no proportion: {successes} of {n}")
    z = float(norm.ppf((1 + confidence) / 2))
    share = successes / n
    centre = share + z**2 / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    scale = 1 + z**2 / n
    # The closed form misses 0 and 1 by a rounding error where it should reach them.
    lower = 0.0 if successes == 0 else (centre - half) / scale
    upper = 1.0 if successes == n else (centre + half) / scale
    return Interval(lower, upper)


def wilson_p_value(successes: float, n: float, share: float) -> float:
    """Two-sided p-value of "the proportion does not exceed `share`", from the score that Wilson's interval inverts."""
    spread = math.sqrt(share * (1 - share) / n)
    excess = successes / n - share
    if spread == 0:
        return 0.0 if excess > 0 else 1.0
    return min(1.0, 2 * float(norm.sf(excess / spread)))
