"""Tier one: how far an arm's next-token distributions lie from the baseline's, over the baseline's own tokens.

These figures warn and rank. They pass nobody: near the baseline they say little about task quality
("Displacement Is Not Direction", arXiv 2606.19558). Definitions follow llama.cpp's `llama-perplexity --kl-divergence`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from quantgate.quality.quality_model import QualityModel
from quantgate.quality.rows import QualityRow, detail_json

TASK_NAME = "replay"


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


@dataclass(frozen=True, slots=True)
class PositionComparison:
    """Baseline against candidate at each answer position; arrays of one length.

    kl: sum over tokens of p(log p - log q) in nats, p the baseline's distribution and q the candidate's.
    nll_delta: -log q(t) + log p(t) for the baseline's token t, in nats; exp of its mean is the perplexity ratio.
    same_top1: both have the same most likely token.
    """

    kl: npt.NDArray[np.float64]
    nll_delta: npt.NDArray[np.float64]
    same_top1: npt.NDArray[np.bool_]

    def metrics(self) -> dict[str, float]:
        """The sequence's metrics by name.

        first_divergence_fraction: positions before the first at which the most likely tokens differ, over all
        positions; 1 where they never do.
        """
        differing = np.flatnonzero(~self.same_top1)
        before = int(differing[0]) if differing.size else self.same_top1.size
        return {
            "kl": float(self.kl.mean()),
            "kl_p99": float(np.quantile(self.kl, 0.99)),
            "top1_agreement": float(self.same_top1.mean()),
            "first_token_agreement": float(self.same_top1[0]),
            "nll_delta": float(self.nll_delta.mean()),
            "first_divergence_fraction": before / self.same_top1.size,
        }


def compare_positions(
    baseline_logits: torch.Tensor, candidate_logits: torch.Tensor, tokens: Sequence[int]
) -> PositionComparison:
    """Compare two logit tensors [positions, vocabulary] at the positions that predict `tokens`.

    Log-softmax runs in float64: near the baseline, KL is a difference of nearly equal numbers, and float32 would
    leave a floor of about 1e-7 and negative values.
    """
    if baseline_logits.shape != candidate_logits.shape or baseline_logits.shape[0] != len(tokens):
        raise ValueError(
            f"Logits of shapes {tuple(baseline_logits.shape)} and {tuple(candidate_logits.shape)} cannot be compared "
            f"over {len(tokens)} tokens; expected [{len(tokens)}, vocabulary] twice."
        )
    log_p = torch.log_softmax(baseline_logits.double(), dim=-1)
    log_q = torch.log_softmax(candidate_logits.double(), dim=-1)
    # A token of probability 0 under the baseline adds nothing; without the mask 0 * (-inf - log q) would be NaN.
    terms = torch.where(log_p > -torch.inf, log_p.exp() * (log_p - log_q), 0.0)
    chosen = torch.tensor(list(tokens)).unsqueeze(-1)
    nll_delta = log_p.gather(-1, chosen) - log_q.gather(-1, chosen)
    return PositionComparison(
        kl=terms.sum(dim=-1).clamp_min(0.0).numpy(),
        nll_delta=nll_delta.squeeze(-1).numpy(),
        same_top1=(log_p.argmax(dim=-1) == log_q.argmax(dim=-1)).numpy(),
    )


def distribution_rows(
    arms: Mapping[str, QualityModel], baseline_id: str, sequences: Sequence[AnswerSequence]
) -> Iterator[list[QualityRow]]:
    """One batch of rows per sequence, for every arm but the baseline.

    The baseline's logits are computed once per sequence, and no more than one sequence's are held at a time.
    """
    for sequence in sequences:
        reference = _answer_logits(arms[baseline_id], sequence)
        rows: list[QualityRow] = []
        for arm_id, model in arms.items():
            if arm_id != baseline_id:
                compared = compare_positions(reference, _answer_logits(model, sequence), sequence.output_ids)
                rows.extend(_rows(arm_id, sequence, compared))
        yield rows


def _answer_logits(model: QualityModel, sequence: AnswerSequence) -> torch.Tensor:
    [logits] = model.continuation_logits(sequence.prompt_ids, [sequence.output_ids])
    return logits


def _rows(arm_id: str, sequence: AnswerSequence, compared: PositionComparison) -> Iterator[QualityRow]:
    detail = detail_json({"positions": len(sequence.output_ids)})
    for metric, value in compared.metrics().items():
        yield QualityRow(
            arm_id, "distribution", TASK_NAME, sequence.request_id, sequence.cluster_id, metric, value, detail=detail
        )
