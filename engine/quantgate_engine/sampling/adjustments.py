"""What a request adds to or takes from the model's logits before a token is chosen."""

from __future__ import annotations

import torch
from torch import Tensor

from quantgate_engine.sampling.token_history import TokenHistory
from quantgate_engine.sampling_params import SamplingParams


def adjust_(logits: Tensor, params: SamplingParams, history: TokenHistory | None) -> None:
    """Changes logits [vocab] in place, in the order of vLLM (and of transformers, for the first two):

    1. `logit_bias` is added.
    2. Logits of tokens in prompt or output are divided by `repetition_penalty` where they are positive, and multiplied
       by it where they are negative: Keskar et al. 2019, arXiv:1909.05858, section 4.1, in the form of transformers,
       by which negative logits get smaller too.
    3. `presence_penalty` and the count times `frequency_penalty` are taken from the logits of tokens that were drawn
       (OpenAI's API reference).
    """
    if params.logit_bias:
        _add(logits, list(params.logit_bias), list(params.logit_bias.values()))
    if not params.penalises:
        return
    if history is None:
        raise ValueError("penalties need the tokens that came before")
    if params.repetition_penalty != 1.0:
        _penalise_repetition(logits, list(history.present()), params.repetition_penalty)
    drawn = history.drawn()
    if drawn and (params.presence_penalty or params.frequency_penalty):
        penalties = [-params.presence_penalty - params.frequency_penalty * count for count in drawn.values()]
        _add(logits, list(drawn), penalties)


def _add(logits: Tensor, token_ids: list[int], amounts: list[float]) -> None:
    chosen = torch.tensor(token_ids, device=logits.device)
    logits.index_add_(0, chosen, torch.tensor(amounts, dtype=logits.dtype, device=logits.device))


def _penalise_repetition(logits: Tensor, token_ids: list[int], penalty: float) -> None:
    chosen = torch.tensor(token_ids, device=logits.device)
    values = logits.index_select(0, chosen)
    logits.index_copy_(0, chosen, torch.where(values < 0, values * penalty, values / penalty))
