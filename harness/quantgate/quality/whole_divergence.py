"""Divergence of whole next-token distributions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from quantgate.quality.position_comparison import PositionComparison


def compare_positions(
    baseline_logits: torch.Tensor, candidate_logits: torch.Tensor, tokens: Sequence[int]
) -> PositionComparison:
    """Compare two logit tensors [positions, vocabulary] at the positions that predict `tokens`.

    Log-softmax runs in float64: near the baseline, KL is a difference of nearly equal numbers, and float32 would
    leave a floor of about 1e-7 and negative values.
    """
    if baseline_logits.shape != candidate_logits.shape or baseline_logits.shape[0] != len(tokens):
        raise ValueError(
            f"Logits of shapes {tuple(baseline_logits.shape)} and {tuple(candidate_logits.shape)} cannot be compared "
            f"over {len(tokens)} tokens; expected [{len(tokens)}, vocabulary] twice."
        )
    log_p = torch.log_softmax(baseline_logits.double(), dim=-1)
    log_q = torch.log_softmax(candidate_logits.double(), dim=-1)
    # A token of probability 0 under the baseline adds nothing; without the mask 0 * (-inf - log q) would be NaN.
    terms = torch.where(log_p > -torch.inf, log_p.exp() * (log_p - log_q), 0.0)
    chosen = torch.tensor(list(tokens)).unsqueeze(-1)
    nll_delta = log_p.gather(-1, chosen) - log_q.gather(-1, chosen)
    return PositionComparison(
        kl=terms.sum(dim=-1).clamp_min(0.0).numpy(),
        nll_delta=nll_delta.squeeze(-1).numpy(),
        same_top1=(log_p.argmax(dim=-1) == log_q.argmax(dim=-1)).numpy(),
        positions=np.arange(len(tokens)),
    )
