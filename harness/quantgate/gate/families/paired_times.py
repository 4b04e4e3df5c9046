"""One time of the same requests on both arms, and what became of the pairs that lack it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quantgate.gate.evidence import Floats, Indices, Pairing
from quantgate.metrics.endless_times import times_or_endless
from quantgate_engine.counted import counted, plural


@dataclass(frozen=True, slots=True)
class PairedTimes:
    """Times in ms, [n] each, infinite where an arm left the request unanswered; `clusters` as in the pairing.

    baseline_id, candidate_id: the arms, for words. one_sided: pairs outside these n, in which one answer alone has the
    time at all.
    """

    baseline_id: str
    candidate_id: str
    baseline: Floats
    candidate: Floats
    clusters: Indices
    one_sided: int

    @classmethod
    def of(cls, name: str, pairs: Pairing) -> PairedTimes:
        """The request metric `name` of the pairing's requests."""
        baseline, candidate = times_or_endless(name, pairs.baseline), times_or_endless(name, pairs.candidate)
        told = ~np.isnan(baseline) & ~np.isnan(candidate)
        one_sided = np.isfinite(baseline) & np.isnan(candidate) | np.isnan(baseline) & np.isfinite(candidate)
        return cls(
            pairs.baseline_id, pairs.candidate_id, baseline[told], candidate[told], pairs.clusters[told],
            one_sided=int(one_sided.sum()),
        )  # fmt: skip

    @property
    def served(self) -> PairedTimes:
        """The pairs that both arms served."""
        both = np.isfinite(self.baseline) & np.isfinite(self.candidate)
        return PairedTimes(
            self.baseline_id, self.candidate_id, self.baseline[both], self.candidate[both], self.clusters[both],
            self.one_sided,
        )  # fmt: skip

    @property
    def endless(self) -> tuple[int, int]:
        """How many requests went unanswered on the baseline, and on the candidate."""
        return int(np.isinf(self.baseline).sum()), int(np.isinf(self.candidate).sum())

    @property
    def favours_candidate(self) -> bool:
        """Whether leaving out the unanswered requests spares the candidate more than the baseline."""
        own, other = self.endless
        return other > own

    def words(self, *, mean: bool) -> str:
        """In sentences what became of the pairs without a time; empty where there are none."""
        own, other = self.endless
        sentences = []
        if own or other:
            missing = f"{other:,} of {counted(len(self.baseline), 'request')} went unanswered on {self.candidate_id}, "
            missing += f"{own:,} on {self.baseline_id}"
            rest = "the mean is that of the requests which both arms served"
            rest += ", and the loss has no upper limit" if self.favours_candidate else ""
            sentences.append(f"{missing}; {rest if mean else 'they count as infinitely slow'}.")
        if self.one_sided:
            sentences.append(
                f"{counted(self.one_sided, 'more pair')} {plural(self.one_sided, 'does', 'do')} not count: one of the "
                "two answers has no such time (a single token has no gap after it, and an answer that its client "
                "left on plan no end)."
            )
        return " ".join(sentences)
