"""One token out of a distribution: a race that each token runs with noise of its own (Gumbel-max)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from quantgate_engine.sampling.noise import gumbel_noise
from quantgate_engine.sampling_params import SamplingParams

# float32 has no smaller or larger numbers to divide by; what these do to logits, smaller and larger ones do too.
_LEAST_TEMPERATURE, _GREATEST_TEMPERATURE = 1.2e-38, 3.4e38


def draw_token(logits: NDArray[np.float32], params: SamplingParams, position: int) -> int:
    """logits [vocab], their greatest finite -> argmax(logits / temperature + Gumbel noise) of the tokens that are kept.

    That is a draw from the softmax (Gumbel 1954, "Statistical theory of extreme values"; Maddison et al. 2014,
    arXiv:1411.0030), to the resolution of float32. A small change of the logits changes the token only where the two
    best sums are nearly equal, and a cut only where it takes the winner out, since the others keep their noise: so
    batches, schemes and cuts that hardly differ draw nearly the same tokens.

    Temperature first, then the `top_k` most likely tokens; of them, the smallest set whose probability reaches `top_p`
    (Holtzman et al. 2019, arXiv:1904.09751) and those with at least `min_p` times the likeliest one's probability
    (Nguyen et al. 2024, arXiv:2407.01082). Of tokens that are as likely as each other, the first ones are kept.

    Temperature divides the differences to the greatest logit, which are 0 or negative: so the smallest temperatures
    lead to the greedy token, where the quotients of the logits themselves would be infinite.
    """
    temperature = np.float32(usable_temperature(params.temperature))
    with np.errstate(over="ignore"):
        scaled = logits - logits.max()
        scaled /= temperature
    if not 0 < params.top_k < len(scaled):
        return _winner(scaled, gumbel_noise(params.seed, position, len(logits)), params)
    token_ids = _most_likely(scaled, params.top_k)
    noise = gumbel_noise(params.seed, position, len(logits), token_ids)
    return int(token_ids[_winner(scaled[token_ids], noise, params)])


def usable_temperature(temperature: float) -> float:
    """One that float32 holds."""
    return min(max(temperature, _LEAST_TEMPERATURE), _GREATEST_TEMPERATURE)


def _most_likely(scaled: NDArray[np.float32], count: int) -> NDArray[np.intp]:
    """So many token ids, ascending."""
    bound = np.partition(scaled, len(scaled) - count)[len(scaled) - count]
    token_ids = np.flatnonzero(scaled >= bound)
    if len(token_ids) == count:
        return token_ids
    equal = np.flatnonzero(scaled == bound)
    return np.setdiff1d(token_ids, equal[len(equal) - (len(token_ids) - count) :], assume_unique=True)


def _winner(scaled: NDArray[np.float32], noise: NDArray[np.float32], params: SamplingParams) -> int:
    """The place of the greatest sum among the tokens that `min_p` and `top_p` keep; scaled: at most 0."""
    race = noise
    race += scaled
    if params.min_p > 0.0:
        race[scaled < math.log(params.min_p)] = -np.inf
    if params.top_p == 1.0:
        return int(race.argmax())
    # Who wins is asked whether it may: cheaper than to sort the tokens, and if it may not, the less likely may neither.
    weights = np.exp(scaled)
    mass = float(weights.sum()) * params.top_p
    while True:
        place = int(race.argmax())
        ahead = weights > weights[place]
        ahead[:place] |= weights[:place] == weights[place]
        # A token stays when the mass before it is short of top_p: the first always does.
        if float((weights * ahead).sum()) < mass:
            return place
        race[~ahead] = -np.inf
