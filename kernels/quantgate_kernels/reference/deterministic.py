"""The `reference` kernels one row at a time: whatever else a step holds, a row is computed by the same calls.

Torch promises no row the same bits in another batch: a product may take another kernel for another number of rows, an
elementwise loop computes its last few numbers otherwise, a padded context is summed in another order. Called with one
row, its operations get operands of the same shape and content each time. Nothing here is fast; the `cpu` set has
products of its own.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from typing_extensions import override

from quantgate_kernels.bnb.weights import BnbNf4Weight
from quantgate_kernels.reference.head import VOCABULARY_SLICE
from quantgate_kernels.reference.kernels import ReferenceKernels
from quantgate_kernels.reference.lone_rows import attend_alone, plan_seen_slots, rows_of
from quantgate_kernels.reference.paged_rows import path_over
from quantgate_kernels.reference.step_plans import StepPlans
from quantgate_kernels.types import (
    AttentionBatch,
    DenseWeight,
    Int8DynamicWeight,
    KVLayer,
    LinearWeight,
    ReorderedWeight,
    StackedWeight,
    StoredWeight,
)


class DeterministicReferenceKernels(ReferenceKernels):
    """Implements `KernelSet`: every row of every result depends on that row and its own context alone."""

    name = "reference-deterministic"

    def __init__(self) -> None:
        super().__init__()
        self._seen_slots = StepPlans(plan_seen_slots)

    @override
    def stored_form(self, weight: LinearWeight, compute: torch.dtype, *, split: bool = False) -> StoredWeight:
        """As it is: packed forms are multiplied by operators that divide their sums among threads as they like.

        bitsandbytes' order of NF4 rounds its scales, so that the mode would change the weights if it did without.
        """
        if isinstance(weight, ReorderedWeight | StackedWeight | BnbNf4Weight):
            return super().stored_form(weight, compute, split=split)
        return weight

    @override
    def rms_norm(self, x: Tensor, weight: Tensor, eps: float, residual: Tensor | None = None) -> tuple[Tensor, Tensor]:
        norm = super().rms_norm
        residuals = [None] * x.shape[0] if residual is None else rows_of(residual)
        pairs = [norm(row, weight, eps, added) for row, added in zip(rows_of(x), residuals, strict=True)]
        normalised = torch.cat([pair[0] for pair in pairs])
        return normalised, x if residual is None else torch.cat([pair[1] for pair in pairs])

    @override
    def rope_and_write_kv(
        self, qkv: Tensor, cos: Tensor, sin: Tensor, num_heads: int, num_kv_heads: int, cache: KVLayer, slots: Tensor
    ) -> Tensor:
        rotate = super().rope_and_write_kv
        each = zip(rows_of(qkv), *(torch.split(part, 1) for part in (cos, sin, slots)), strict=True)
        rotated = [rotate(row, c, s, num_heads, num_kv_heads, cache, slot) for row, c, s, slot in each]
        return torch.cat(rotated)

    @override
    def attention(
        self, q: Tensor, cache: KVLayer, batch: AttentionBatch, scale: float, window: int | None = None
    ) -> Tensor:
        self.paths["attention"] = path_over(cache, "torch, sums in float32")
        seen = self._seen_slots.of(batch, q.dtype, window)
        return torch.cat(
            [attend_alone(row, cache, slots, scale) for row, slots in zip(torch.split(q, 1), seen, strict=True)]
        )

    @override
    def silu_and_mul(self, gate_up: Tensor) -> Tensor:
        silu_and_mul = super().silu_and_mul
        return torch.cat([silu_and_mul(row) for row in rows_of(gate_up)])

    @override
    def linear(self, x: Tensor, weight: StoredWeight, bias: Tensor | None = None) -> Tensor:
        if isinstance(weight, Int8DynamicWeight | ReorderedWeight):
            # Each operation of the one is exact or rounds one number by itself, and the other one only moves numbers,
            # before a product of this set's own: rows do not meet in either.
            return super().linear(x, weight, bias)
        multiply = super().linear
        return torch.cat([multiply(row, weight, bias) for row in rows_of(x)])

    @override
    def head(self, x: Tensor, weight: StoredWeight, *, exact: bool = False) -> Tensor:
        """All logits in float32 always: a row's tokens may not depend on whether it wants probabilities."""
        if not isinstance(weight, DenseWeight):
            return super().head(x, weight, exact=exact)
        self.paths["head"] = "float32 products of one row in slices"
        rows = rows_of(x.float())
        logits = torch.empty(len(rows), weight.shape[0], device=x.device)
        for start in range(0, weight.shape[0], VOCABULARY_SLICE):
            part = weight.weight[start : start + VOCABULARY_SLICE].float()
            for index, row in enumerate(rows):
                logits[index, start : start + part.shape[0]] = F.linear(row, part)[0]
        return logits
