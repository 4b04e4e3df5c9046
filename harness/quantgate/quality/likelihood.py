"""The likelihood twin: does the arm find the right answer likelier than each plausible wrong one?

A small model that never writes the right text still ranks texts, so the twin sees a loss that generation cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from quantgate.quality.scores import ListedScores, Scores


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


@dataclass(frozen=True, slots=True)
class Censored:
    """The arm does not tell the log-prob of some token of the options, so that they cannot be ranked."""


def rank_options(scores: Sequence[Scores], options: Sequence[Sequence[int]]) -> TwinResult | Censored:
    """`options` is the gold continuation and its distractors, `scores` what one arm says of each."""
    means = [mean_logprob(scored, option) for scored, option in zip(scores, options, strict=True)]
    known = [mean for mean in means if mean is not None]
    if len(known) < len(means):
        return Censored()
    return TwinResult(gold_logprob=known[0], distractor_logprobs=tuple(known[1:]))


def mean_logprob(scores: Scores, continuation_ids: Sequence[int]) -> float | None:
    """Mean log-probability per token of a continuation, in nats: (1/n) sum of log p(c_i | prompt, c_<i).

    Divided by the number of tokens as `acc_norm` of lm-evaluation-harness divides by bytes: without it the shortest
    option would win. None where some token's is unknown.
    """
    if isinstance(scores, ListedScores):
        return None if scores.censored else float(scores.own.mean())
    chosen = torch.tensor(list(continuation_ids)).unsqueeze(-1)
    return float(torch.log_softmax(scores.logits.double(), dim=-1).gather(-1, chosen).mean())
