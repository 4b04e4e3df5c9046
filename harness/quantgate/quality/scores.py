"""What an arm says of given tokens: whole next-token logits, or the log-probs of the likeliest tokens alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

NO_TOKEN = -1
"""Fills the alternatives of a position that lists fewer than others; its log-prob is minus infinity."""


@dataclass(frozen=True, slots=True)
class WholeScores:
    """logits: float32 [positions, vocabulary]; row i is the arm's view of token i of the continuation."""

    logits: torch.Tensor


@dataclass(frozen=True, slots=True)
class ListedScores:
    """Log-probs in nats of the tokens that an arm lists at each position, likeliest first.

    own: [positions], of the continuation's tokens; NaN where the arm does not tell (the position is censored).
    token_ids, logprobs: [positions, alternatives]; a row without any was not listed at all.
    """

    own: Floats
    token_ids: Integers
    logprobs: Floats

    @property
    def censored(self) -> int:
        """Positions whose own token's log-prob is unknown."""
        return int(np.isnan(self.own).sum())


Scores = WholeScores | ListedScores


def listed_scores(own: Sequence[float | None], alternatives: Sequence[Mapping[int, float]], limit: int) -> ListedScores:
    """From one mapping of token id to log-prob a position; the `limit` likeliest are kept, ties by the smaller id."""
    rows = [sorted(listed.items(), key=lambda item: (-item[1], item[0]))[:limit] for listed in alternatives]
    width = max((len(row) for row in rows), default=0)
    token_ids = np.full((len(rows), width), NO_TOKEN, dtype=np.int64)
    logprobs = np.full((len(rows), width), -np.inf)
    for position, row in enumerate(rows):
        for place, (token_id, logprob) in enumerate(row):
            token_ids[position, place] = token_id
            logprobs[position, place] = logprob
    known = np.array([np.nan if value is None else value for value in own], dtype=np.float64)
    return ListedScores(known, token_ids, logprobs)


def reduced(scores: Scores, tokens: Sequence[int], alternatives: int | None) -> Scores:
    """The scores as an arm that lists only so many `alternatives` would have told them (None: as they are).

    tokens: the continuation. What is listed already is cut; whole logits become log-probs in float64 first.
    """
    if alternatives is None:
        return scores
    if isinstance(scores, ListedScores):
        return ListedScores(scores.own, scores.token_ids[:, :alternatives], scores.logprobs[:, :alternatives])
    logprobs = torch.log_softmax(scores.logits.double(), dim=-1)
    # A stable sort, so that equal log-probs stand by id, as in `listed_scores`.
    order = torch.argsort(logprobs, dim=-1, descending=True, stable=True)[:, :alternatives]
    own = logprobs.gather(-1, torch.tensor(list(tokens)).unsqueeze(-1)).squeeze(-1)
    return ListedScores(own.numpy(), order.numpy(), logprobs.gather(-1, order).numpy())
