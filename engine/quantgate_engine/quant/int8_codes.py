"""Weights as int8 codes, one scale per output channel: what the INT8 schemes share."""

from __future__ import annotations

import torch
from torch import Tensor

LARGEST_CODE = 127


def quantize_channels(weight: Tensor, scale_dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """float32 [out, in] -> (codes int8 [out, in], scales [out] in `scale_dtype`), symmetric, round to nearest.

    scale = max|w| / 127 over a row, rounded to its dtype first; code = round(w / scale), half to even. Codes are chosen
    against the rounded scale that the product will use, so that its rounding is no bias of a row. A row of zeros gets
    scale 1. Any layer fits.
    """
    scales = (weight.abs().amax(dim=1) / LARGEST_CODE).to(scale_dtype)
    scales = torch.where(scales == 0, torch.ones_like(scales), scales)
    codes = (weight / scales.float().unsqueeze(1)).round_().clamp_(-LARGEST_CODE, LARGEST_CODE)
    return codes.to(torch.int8), scales
