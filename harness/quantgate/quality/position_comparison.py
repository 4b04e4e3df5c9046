"""What comparing two arms position by position gives, however much the arms told."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class PositionComparison:
    """Baseline against candidate at each answer position that both list; arrays of one length.

    kl: sum over tokens of p(log p - log q) in nats, p the baseline's distribution and q the candidate's; a lower bound
    of it where `alternatives` is set. nll_delta: -log q(t) + log p(t) for the baseline's token t, in nats; exp of its
    mean is the perplexity ratio; NaN where an arm does not tell it. same_top1: both have the same most likely token.
    positions: the index of each. alternatives: tokens that each arm lists (None: the whole vocabulary).
    rest: mean share of the baseline's probability that no common token holds. censored: positions of the sequence at
    which an arm does not tell the log-prob of the baseline's token.
    """

    kl: npt.NDArray[np.float64]
    nll_delta: npt.NDArray[np.float64]
    same_top1: npt.NDArray[np.bool_]
    positions: npt.NDArray[np.int64]
    alternatives: int | None = None
    rest: float = 0.0
    censored: int = 0

    def metrics(self) -> dict[str, float]:
        """The sequence's metrics by name; a divergence over listed tokens alone is called `kl_topk`, never `kl`.

        first_divergence_fraction: positions before the first at which the most likely tokens differ, over all
        positions; 1 where they never do. first_token_agreement is left out where the first position is not listed.
        """
        divergence = "kl" if self.alternatives is None else "kl_topk"
        differing = np.flatnonzero(~self.same_top1)
        before = int(differing[0]) if differing.size else self.same_top1.size
        found = {
            divergence: float(self.kl.mean()),
            f"{divergence}_p99": float(np.quantile(self.kl, 0.99)),
            "top1_agreement": float(self.same_top1.mean()),
        }
        if self.positions[0] == 0:
            found["first_token_agreement"] = float(self.same_top1[0])
        if not self.censored:
            found["nll_delta"] = float(self.nll_delta.mean())
        return found | {"first_divergence_fraction": before / self.same_top1.size}
