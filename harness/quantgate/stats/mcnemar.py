"""McNemar's exact test of paired binary outcomes; it informs beside Tango's interval and decides nothing."""

from __future__ import annotations

from scipy.stats import binom


def mcnemar_exact(only_baseline: int, only_candidate: int) -> float:
    """One-sided p-value of "the candidate is not worse": P[Bin(b + c, 1/2) >= b], b = only the baseline right.

    Source: Q. McNemar, Psychometrika 12 (1947) 153-157; exact form after F. Mosteller, Biometrics 8 (1952) 220-226.
    """
    return float(binom.sf(only_baseline - 1, only_baseline + only_candidate, 0.5))
