"""From a step's logits to its tokens: one choice for each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from quantgate_engine.executor.base import NoToken, SampledToken
from quantgate_engine.sampling.adjustments import adjust_
from quantgate_engine.sampling.draw import draw_token
from quantgate_engine.sampling.finite_rows import NOT_FINITE, rows_not_finite
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


def sample(logits: Tensor, rows: Sequence[SamplingRow]) -> list[SampledToken | NoToken]:
    """logits float32 [R, vocab], one row per entry of `rows`. Each token depends on its own row alone.

    Rows that are not finite, of which nothing can be told, not even about a forced token, get none.
    """
    unfit = rows_not_finite(logits)
    adjusted = _adjusted(logits, rows)
    return [
        NOT_FINITE if index in unfit else _sampled_token(logits[index], _choose(adjusted[index], row), row)
        for index, row in enumerate(rows)
    ]


def _choose(logits: Tensor, row: SamplingRow) -> int:
    if row.forced_token_id is not None:
        return row.forced_token_id
    if row.params.temperature == 0:
        return int(logits.argmax())
    return draw_token(logits.cpu().numpy(), row.params, row.position)


def _adjusted(logits: Tensor, rows: Sequence[SamplingRow]) -> Tensor:
    """The logits that tokens are chosen by: the very same tensor where nobody asks for a change."""
    changing = [index for index, row in enumerate(rows) if row.params.adjusts_logits and row.forced_token_id is None]
    if not changing:
        return logits
    adjusted = logits.clone()
    for index in changing:
        adjust_(adjusted[index], rows[index].params, rows[index].history)
    return adjusted


def _sampled_token(logits: Tensor, token: int, row: SamplingRow) -> SampledToken:
    """With log-probabilities of the model itself: before penalties, temperature and cuts."""
    alternatives = row.params.logprobs
    if alternatives is None:
        return SampledToken(token)
    logprobs = logits.log_softmax(dim=-1)
    values, token_ids = torch.topk(logprobs, min(alternatives, logprobs.numel()))
    top = tuple(zip(token_ids.tolist(), values.tolist(), strict=True))
    return SampledToken(token, logprob=float(logprobs[token]), top_logprobs=top)
