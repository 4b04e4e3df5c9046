"""From a step's logits to its tokens: one argmax for all greedy rows, one draw for each other row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from quantgate_engine.executor.base import SampledToken
from quantgate_engine.sampling.adjustments import adjust_
from quantgate_engine.sampling.draw import uniform
from quantgate_engine.sampling.token_history import TokenHistory
from quantgate_engine.sampling_params import SamplingParams


@dataclass(frozen=True, slots=True)
class SamplingRow:
    """How one row's token is drawn; `position` is the place that the token takes in its sequence.

    forced_token_id: the token is given, and only its log-probabilities are asked for.
    history: the tokens before it, which penalties depend on.
    """

    params: SamplingParams
    position: int
    forced_token_id: int | None = None
    history: TokenHistory | None = None


def sample(logits: Tensor, rows: Sequence[SamplingRow]) -> list[SampledToken]:
    """logits float32 [R, vocab], one row per entry of `rows`. Each token depends on its own row alone."""
    adjusted = _adjusted(logits, rows)
    tokens: list[int] = adjusted.argmax(dim=-1).tolist()
    for index, row in enumerate(rows):
        if row.forced_token_id is not None:
            tokens[index] = row.forced_token_id
        elif row.params.temperature > 0:
            tokens[index] = draw_token(adjusted[index], row)
    return [_sampled_token(*drawn) for drawn in zip(logits, tokens, rows, strict=True)]


def _adjusted(logits: Tensor, rows: Sequence[SamplingRow]) -> Tensor:
    """The logits that tokens are chosen by: the very same tensor where nobody asks for a change."""
    changing = [index for index, row in enumerate(rows) if row.params.adjusts_logits and row.forced_token_id is None]
    if not changing:
        return logits
    adjusted = logits.clone()
    for index in changing:
        adjust_(adjusted[index], rows[index].params, rows[index].history)
    return adjusted


def draw_token(logits: Tensor, row: SamplingRow) -> int:
    """logits [vocab] -> a token, by inverting the distribution function at the row's uniform number.

    Temperature first, then the `top_k` most likely tokens; of them, the smallest set whose probability reaches `top_p`
    (Holtzman et al. 2019, arXiv:1904.09751) and those with at least `min_p` times the likeliest one's probability
    (Nguyen et al. 2024, arXiv:2407.01082).

    Temperature divides the differences to the greatest logit, which are 0 or negative: so the smallest temperatures
    lead to the greedy token, where the quotients of the logits themselves would be infinite.
    """
    params = row.params
    exact = logits.double()
    scaled = (exact - exact.max()) / params.temperature
    if params.top_k == 0 and params.top_p == 1.0 and params.min_p == 0.0:
        return _invert(scaled.softmax(dim=-1), row)
    kept = min(params.top_k or scaled.numel(), scaled.numel())
    likeliest, token_ids = torch.topk(scaled, kept)
    probabilities = likeliest.softmax(dim=-1)
    # A token stays when the mass before it is short of top_p: the first always does.
    within_top_p = probabilities.cumsum(dim=-1) - probabilities < params.top_p
    within_min_p = probabilities >= params.min_p * probabilities[0]
    return int(token_ids[_invert(probabilities[within_top_p & within_min_p], row)])


def _invert(probabilities: Tensor, row: SamplingRow) -> int:
    """The first index at which the running sum exceeds u times the total."""
    cumulative = probabilities.cumsum(dim=-1)
    target = uniform(row.params.seed, row.position) * cumulative[-1]
    return min(int(torch.searchsorted(cumulative, target, right=True)), probabilities.numel() - 1)


def _sampled_token(logits: Tensor, token: int, row: SamplingRow) -> SampledToken:
    """With log-probabilities of the model itself: before penalties, temperature and cuts."""
    alternatives = row.params.logprobs
    if alternatives is None:
        return SampledToken(token)
    logprobs = logits.log_softmax(dim=-1)
    values, token_ids = torch.topk(logprobs, min(alternatives, logprobs.numel()))
    top = tuple(zip(token_ids.tolist(), values.tolist(), strict=True))
    return SampledToken(token, logprob=float(logprobs[token]), top_logprobs=top)
