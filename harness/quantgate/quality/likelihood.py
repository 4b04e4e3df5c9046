"""The likelihood twin: does the arm find the right answer likelier than each plausible wrong one?

A small model that never writes the right text still ranks texts, so the twin sees a loss that generation cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from quantgate.quality.quality_model import QualityModel


@dataclass(frozen=True, slots=True)
class TwinResult:
    """Mean log-probabilities per token, in nats, of the gold continuation and of each distractor."""

    gold_logprob: float
    distractor_logprobs: tuple[float, ...]

    @property
    def gold_margin(self) -> float:
        """The gold's lead over the best distractor, in nats per token; negative where a distractor leads."""
        return self.gold_logprob - max(self.distractor_logprobs)

    @property
    def gold_preferred(self) -> bool:
        """Strictly ahead of every distractor: a tie is no preference."""
        return self.gold_margin > 0.0


def rank_options(
    model: QualityModel, prompt_ids: Sequence[int], gold_ids: Sequence[int], distractor_ids: Sequence[Sequence[int]]
) -> TwinResult:
    """Score the gold continuation and its distractors after one prompt."""
    options = [gold_ids, *distractor_ids]
    logits = model.continuation_logits(prompt_ids, options)
    gold, *distractors = (mean_logprob(rows, option) for rows, option in zip(logits, options, strict=True))
    return TwinResult(gold_logprob=gold, distractor_logprobs=tuple(distractors))


def mean_logprob(logits: torch.Tensor, continuation_ids: Sequence[int]) -> float:
    """Mean log-probability per token of a continuation, in nats: (1/n) sum of log p(c_i | prompt, c_<i).

    Divided by the number of tokens as `acc_norm` of lm-evaluation-harness divides by bytes: without it the shortest
    option would win.
    """
    chosen = torch.tensor(list(continuation_ids)).unsqueeze(-1)
    return float(torch.log_softmax(logits.double(), dim=-1).gather(-1, chosen).mean())
