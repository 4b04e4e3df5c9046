"""Tier one: how far an arm's next-token distributions lie from the baseline's, over the baseline's own tokens.

These figures warn and rank. They pass nobody: near the baseline they say little about task quality
("Displacement Is Not Direction", arXiv 2606.19558). Definitions follow llama.cpp's `llama-perplexity --kl-divergence`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quantgate.quality.listed_divergence import compare_listed
from quantgate.quality.position_comparison import PositionComparison
from quantgate.quality.quality_model import Continuations, ItemFailure, QualityModel
from quantgate.quality.rows import QualityRow, detail_json
from quantgate.quality.scores import ListedScores, Scores, WholeScores, reduced
from quantgate.quality.whole_divergence import compare_positions

TASK_NAME = "replay"

Compared = PositionComparison | ItemFailure


@dataclass(frozen=True, slots=True)
class AnswerSequence:
    """A prompt and the tokens that the baseline answered in the replay; a cluster is a session or a document."""

    request_id: str
    cluster_id: str
    prompt_ids: tuple[int, ...]
    output_ids: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.prompt_ids or not self.output_ids:
            raise ValueError(f"Sequence {self.request_id} needs at least one prompt token and one output token.")

    @property
    def forced_ids(self) -> tuple[int, ...]:
        """What the model reads; the last output token predicts nothing that is compared."""
        return self.prompt_ids + self.output_ids[:-1]


def score_sequences(
    model: QualityModel, sequences: Sequence[AnswerSequence], alternatives: int | None
) -> list[Scores | ItemFailure]:
    """Each sequence's answer as the arm sees it, cut to what every arm lists (None: whole distributions)."""
    questions = [Continuations(sequence.prompt_ids, (sequence.output_ids,)) for sequence in sequences]
    return [
        scored if isinstance(scored, ItemFailure) else reduced(scored[0], sequence.output_ids, alternatives)
        for sequence, scored in zip(sequences, model.score(questions), strict=True)
    ]


def compare_scores(
    sequence: AnswerSequence,
    baseline: Scores | ItemFailure,
    candidate: Scores | ItemFailure,
    alternatives: int | None,
) -> Compared:
    """A failure of either arm is the pair's. Both scores are whole, or both listed."""
    if isinstance(baseline, ItemFailure):
        return ItemFailure(f"the baseline: {baseline.reason}")
    if isinstance(candidate, ItemFailure):
        return candidate
    if isinstance(baseline, WholeScores) and isinstance(candidate, WholeScores):
        if baseline.logits.shape != candidate.logits.shape:
            sizes = (scores.logits.shape[1] for scores in (baseline, candidate))
            return ItemFailure("vocabularies of {} tokens and {} cannot be compared".format(*sizes))
        return compare_positions(baseline.logits, candidate.logits, sequence.output_ids)
    if isinstance(baseline, ListedScores) and isinstance(candidate, ListedScores) and alternatives is not None:
        listed = compare_listed(baseline, candidate, sequence.output_ids, alternatives)
        return listed or ItemFailure("no position has tokens listed on both arms")
    raise ValueError("whole distributions cannot be compared with listed tokens; reduce both first")


def distribution_rows(
    arm_id: str, sequence: AnswerSequence, compared: PositionComparison, *, likelihoods: bool
) -> Iterator[QualityRow]:
    """The sequence's rows for one arm; without `nll_delta` where `likelihoods` says that some arm lacks it."""
    about: dict[str, float | int] = {"positions": len(compared.positions)}
    if compared.alternatives is not None:
        about |= {"k": compared.alternatives, "rest": round(compared.rest, 6)}
    detail = detail_json(about)
    for metric, value in compared.metrics().items():
        if likelihoods or metric != "nll_delta":
            yield QualityRow(
                arm_id, "distribution", TASK_NAME, sequence.request_id, sequence.cluster_id, metric, value,
                detail=detail,
            )  # fmt: skip
