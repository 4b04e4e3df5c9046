"""The head's product with float32 results, though torch rounds 16-bit products to 16 bits.

A bfloat16 logit of 25 has steps of 0.125: the best tokens tie, and on the bundled model this rounding alone doubled the
divergence of the 16-bit arm from float32. So many rows (teacher forcing) are multiplied in float32, a slice of the
vocabulary at a time; few rows (decoding), where converting the head would cost more than the rest of the step's
products, get their best candidates scored again in float32.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from quantgate_kernels.types import DenseWeight

FEW_ROWS = 32
CANDIDATES = 32
VOCABULARY_SLICE = 4096


def head_logits(x: Tensor, head: DenseWeight, paths: dict[str, str], *, exact: bool) -> Tensor:
    """x [R, hidden] -> float32 [R, vocab]; `exact` asks for float32 products however few the rows."""
    if head.weight.dtype == torch.float32:
        paths["head"] = "torch.linear"
        return F.linear(x.float(), head.weight)
    if exact or x.shape[0] > FEW_ROWS or x.dtype != head.weight.dtype:
        paths["head"] = "float32 product in slices"
        return _sliced_product(x.float(), head.weight)
    paths[f"head.rows<={FEW_ROWS}"] = f"16-bit product, best {CANDIDATES} in float32"
    return _rescored_product(x, head.weight)


def _sliced_product(x: Tensor, weight: Tensor) -> Tensor:
    logits = torch.empty(x.shape[0], weight.shape[0], device=x.device)
    for start in range(0, weight.shape[0], VOCABULARY_SLICE):
        part = weight[start : start + VOCABULARY_SLICE]
        logits[:, start : start + part.shape[0]] = F.linear(x, part.float())
    return logits


def _rescored_product(x: Tensor, weight: Tensor) -> Tensor:
    logits = F.linear(x, weight).float()
    _, candidates = logits.topk(min(CANDIDATES, weight.shape[0]), dim=-1)
    rows = weight.index_select(0, candidates.reshape(-1)).float().view(*candidates.shape, -1)
    return logits.scatter_(1, candidates, torch.bmm(rows, x.float().unsqueeze(-1)).squeeze(-1))
