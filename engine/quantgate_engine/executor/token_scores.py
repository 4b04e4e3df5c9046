"""What a model thinks of given tokens: their log-probabilities, ranks and alternatives."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from quantgate_engine.executor.base import TokenScore


def score_rows(logits: Tensor, token_ids: Sequence[int], alternatives: int) -> list[TokenScore]:
    """logits float32 [R, vocab], row i the view of token_ids[i] -> a score each, with so many likeliest tokens."""
    logprobs = logits.log_softmax(dim=-1)
    chosen = torch.tensor(token_ids, device=logits.device).unsqueeze(-1)
    own = logprobs.gather(-1, chosen)
    ranks = (logprobs > own).sum(dim=-1) + 1
    values, ids = torch.topk(logprobs, min(alternatives, logprobs.shape[-1]), dim=-1)
    rows = zip(token_ids, own.squeeze(-1).tolist(), ranks.tolist(), ids.tolist(), values.tolist(), strict=True)
    return [
        TokenScore(token_id, logprob, rank, tuple(zip(top_ids, top_values, strict=True)))
        for token_id, logprob, rank, top_ids, top_values in rows
    ]
