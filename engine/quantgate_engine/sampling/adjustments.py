"""What a request adds to or takes from the model's logits before a token is chosen."""

from __future__ import annotations

from array import array

import numpy as np
import torch
from torch import Tensor

from quantgate_engine.sampling.token_history import TokenHistory
from quantgate_engine.sampling_params import SamplingParams


def adjust_(logits: Tensor, params: SamplingParams, history: TokenHistory | None) -> None:
    """Changes logits [vocab] in place, in the order of vLLM (and of transformers, for the first two):

    1. `logit_bias` is added.
    2. Logits of tokens in prompt or output are divided by `repetition_penalty` where they are positive, and multiplied
       by it where they are negative: Keskar et al. 2019, arXiv:1909.05858, section 4.1, in the form of transformers,
       by which negative logits get smaller too. What would leave the range of the numbers stays at its end.
    3. `presence_penalty` and the count times `frequency_penalty` are taken from the logits of tokens that were drawn
       (OpenAI's API reference).
    """
    if params.logit_bias:
        biases = torch.tensor(list(params.logit_bias.values()), dtype=logits.dtype, device=logits.device)
        logits.index_add_(0, torch.tensor(list(params.logit_bias), device=logits.device), biases)
    if not params.penalises:
        return
    if history is None:
        raise ValueError("penalties need the tokens that came before")
    if params.repetition_penalty != 1.0:
        _penalise_repetition(logits, _tensor(history.present(), logits.device), params.repetition_penalty)
    drawn = history.drawn()
    if drawn.counts and (params.presence_penalty or params.frequency_penalty):
        counts = _tensor(drawn.counts, logits.device).to(logits.dtype)
        penalties = counts.mul_(params.frequency_penalty).add_(params.presence_penalty)
        logits.index_add_(0, _tensor(drawn.token_ids, logits.device), penalties, alpha=-1)


def _penalise_repetition(logits: Tensor, token_ids: Tensor, penalty: float) -> None:
    values = logits.index_select(0, token_ids)
    penalised = torch.where(values < 0, values * penalty, values / penalty)
    range_of = torch.finfo(logits.dtype)
    logits.index_copy_(0, token_ids, penalised.clamp_(range_of.min, range_of.max))


def _tensor(values: array[int], device: torch.device) -> Tensor:
    """int64, a copy: the array goes on growing."""
    return torch.from_numpy(np.array(values)).to(device)
