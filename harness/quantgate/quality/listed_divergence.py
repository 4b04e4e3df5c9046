"""Divergence of next-token distributions of which only the likeliest tokens are listed: a lower bound of KL.

Tokens are put into classes: one for each token that both arms list, one for the continuation's own token where both
know it, and one for all the rest. KL between distributions over classes is never above KL between the distributions
themselves: the data-processing inequality, for f-divergences the log-sum inequality (Cover and Thomas, "Elements of
Information Theory", 2nd edition, theorems 2.7.1 and 2.8.1). It holds for every choice of classes, so also for one that
follows the data, and with the whole vocabulary listed the classes are the tokens and the two are equal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from quantgate.quality.position_comparison import PositionComparison
from quantgate.quality.scores import NO_TOKEN, ListedScores

_ROUNDING = 1e-6
"""Added to the candidate's rest: servers write log-probs in float32, and the ratio of a rest that is rounding is noise
or infinite. A rest that is counted a little too large can only lower the divergence."""


def compare_listed(
    baseline: ListedScores, candidate: ListedScores, tokens: Sequence[int], alternatives: int
) -> PositionComparison | None:
    """Compare the arms at the positions that both list; None where there is no such position.

    `alternatives`: how many tokens each arm lists, for the record.
    """
    if not len(baseline.own) == len(candidate.own) == len(tokens):
        raise ValueError(
            f"Scores of {len(baseline.own)} and {len(candidate.own)} positions cannot be compared over {len(tokens)} "
            "tokens."
        )
    both = [_position(baseline, candidate, position, token) for position, token in enumerate(tokens)]
    found = [(position, compared) for position, compared in enumerate(both) if compared is not None]
    if not found:
        return None
    positions = np.array([position for position, _ in found])
    nll_delta = baseline.own - candidate.own
    divergences, rests, agreements = zip(*(compared for _, compared in found), strict=True)
    return PositionComparison(
        kl=np.array(divergences),
        nll_delta=nll_delta[positions],
        same_top1=np.array(agreements),
        positions=positions,
        alternatives=alternatives,
        rest=float(np.mean(rests)),
        censored=int(np.isnan(nll_delta).sum()),
    )


def _position(
    baseline: ListedScores, candidate: ListedScores, position: int, token: int
) -> tuple[float, float, bool] | None:
    """KL over classes, the baseline's rest, and whether both find the same token likeliest."""
    log_p, log_q = _listed(baseline, position), _listed(candidate, position)
    if not log_p or not log_q:
        return None
    agreement = _likeliest(log_p) == _likeliest(log_q)
    own_p, own_q = float(baseline.own[position]), float(candidate.own[position])
    if not math.isnan(own_p) and not math.isnan(own_q):
        log_p[token], log_q[token] = own_p, own_q
    divergence, rest = _over_classes(log_p, log_q)
    return divergence, rest, agreement


def _listed(scores: ListedScores, position: int) -> dict[int, float]:
    row = zip(scores.token_ids[position].tolist(), scores.logprobs[position].tolist(), strict=True)
    return {token_id: logprob for token_id, logprob in row if token_id != NO_TOKEN}


def _likeliest(listed: Mapping[int, float]) -> int:
    return min(listed, key=lambda token_id: (-listed[token_id], token_id))


def _over_classes(log_p: Mapping[int, float], log_q: Mapping[int, float]) -> tuple[float, float]:
    """Log-probs all the way: a probability too small for a float is still no infinite ratio."""
    common = [(log_p[token_id], log_q[token_id]) for token_id in log_p if token_id in log_q]
    rest_p, rest_q = (max(0.0, 1.0 - math.fsum(math.exp(pair[arm]) for pair in common)) for arm in (0, 1))
    classes = [*common, (math.log(rest_p) if rest_p > 0 else -math.inf, math.log(rest_q + _ROUNDING))]
    return max(0.0, math.fsum(_term(*pair) for pair in classes)), rest_p


def _term(log_p: float, log_q: float) -> float:
    if log_p == -math.inf:
        return 0.0
    return math.inf if log_q == -math.inf else math.exp(log_p) * (log_p - log_q)
