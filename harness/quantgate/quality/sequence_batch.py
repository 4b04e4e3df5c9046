"""A few answers of the replay, compared on every arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quantgate.capabilities.tier_support import TierSupport, partial
from quantgate.quality.distribution import AnswerSequence, Compared, compare_scores, distribution_rows, score_sequences
from quantgate.quality.quality_model import ItemFailure, QualityModel
from quantgate.quality.rows import QualityRow
from quantgate.quality.scores import Scores, WholeScores, reduced
from quantgate.quality.tally import Tally

MOST_HELD_BYTES = 2 * 1024**3
"""Memory for the baseline's whole distributions where they must wait for the other arms."""
HELD_ALTERNATIVES = 1024
_FLOAT32_BYTES = 4


@dataclass(slots=True)
class ComparisonLevel:
    """What all arms are compared on, shared by all batches: `alternatives` listed tokens, or all (None).

    held_positions: how many of the baseline's positions are held at a time; the first batch tells the vocabulary, and
    where whole distributions would need more than MOST_HELD_BYTES, the HELD_ALTERNATIVES likeliest tokens are kept.
    """

    alternatives: int | None
    held_positions: int = 0
    too_large: bool = False

    def fit(self, scores: Sequence[Scores | ItemFailure]) -> None:
        vocabulary = next((scored.logits.shape[1] for scored in scores if isinstance(scored, WholeScores)), 0)
        if self.held_positions * vocabulary * _FLOAT32_BYTES > MOST_HELD_BYTES:
            self.alternatives, self.too_large = HELD_ALTERNATIVES, True

    def support(self, planned: TierSupport) -> TierSupport:
        if not self.too_large or planned.status != "exact":
            return planned
        return partial(
            f"only the {HELD_ALTERNATIVES} likeliest tokens are compared, all that memory holds while the arms take "
            "turns: KL is a lower bound over them, called kl_topk"
        )


class SequenceBatch:
    """Keeps the baseline's scores until the last arm has been compared with them; the baseline comes first."""

    stage = "distribution"

    def __init__(
        self, sequences: Sequence[AnswerSequence], baseline_id: str, measured: Sequence[str], level: ComparisonLevel
    ) -> None:
        self._sequences = sequences
        self._baseline_id = baseline_id
        self._measured = measured
        self._level = level
        self._reference: list[Scores | ItemFailure] = []
        self._compared: dict[str, list[Compared]] = {}

    def arm_tokens(self, arm_id: str) -> int:
        """Tokens that the arm computes for this batch; the unit of progress."""
        return sum(len(sequence.forced_ids) for sequence in self._sequences) if arm_id in self._measured else 0

    def measure(self, arm_id: str, model: QualityModel) -> None:
        if arm_id not in self._measured:
            return
        scores = score_sequences(model, self._sequences, self._level.alternatives)
        if arm_id == self._baseline_id:
            self._reference = self._held(scores)
            return
        alternatives = self._level.alternatives
        self._compared[arm_id] = [
            compare_scores(sequence, reference, scored, alternatives)
            for sequence, reference, scored in zip(self._sequences, self._reference, scores, strict=True)
        ]

    def _held(self, scores: list[Scores | ItemFailure]) -> list[Scores | ItemFailure]:
        self._level.fit(scores)
        return [
            scored
            if isinstance(scored, ItemFailure)
            else reduced(scored, sequence.output_ids, self._level.alternatives)
            for sequence, scored in zip(self._sequences, scores, strict=True)
        ]

    def take_rows(self, arm_ids: Sequence[str], tally: Tally) -> list[QualityRow]:
        """The rows of the given arms, which have all been measured; what they were made of is forgotten."""
        compared = {arm_id: self._compared[arm_id] for arm_id in arm_ids if arm_id in self._compared}
        rows: list[QualityRow] = []
        for index, sequence in enumerate(self._sequences):
            rows.extend(_rows(sequence, {arm_id: found[index] for arm_id, found in compared.items()}, tally))
        self._count_baseline(tally)
        self._reference, self._compared = [], {}
        return rows

    def _count_baseline(self, tally: Tally) -> None:
        for scored in self._reference:
            tally.asked("distribution", self._baseline_id)
            if isinstance(scored, ItemFailure):
                tally.failed("distribution", self._baseline_id, scored.reason)


def _rows(sequence: AnswerSequence, compared: dict[str, Compared], tally: Tally) -> list[QualityRow]:
    """One sequence on all arms: where some arm does not tell a token's log-prob, none has a likelihood value."""
    told = {arm_id: found for arm_id, found in compared.items() if not isinstance(found, ItemFailure)}
    likelihoods = not any(found.censored for found in told.values())
    rows: list[QualityRow] = []
    for arm_id, found in compared.items():
        tally.asked("distribution", arm_id)
        if isinstance(found, ItemFailure):
            tally.failed("distribution", arm_id, found.reason)
            continue
        if found.censored:
            tally.censored("distribution", arm_id)
        rows.extend(distribution_rows(arm_id, sequence, found, likelihoods=likelihoods))
    return rows
