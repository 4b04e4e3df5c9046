"""The `reference` kernel set: every operation by torch alone, on any device. It defines what is right."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from typing_extensions import override

from quantgate_kernels.kernel_set import KernelSet
from quantgate_kernels.layers import Angles, DecoderShape, DecoderWeights, TableWeight
from quantgate_kernels.reference.attention import attend, plan_attention
from quantgate_kernels.reference.dense import torch_multiplies_bfloat16
from quantgate_kernels.reference.head import head_logits
from quantgate_kernels.reference.linear import check_order, multiply, stored_form
from quantgate_kernels.reference.paged_rows import path_over, write_rows
from quantgate_kernels.reference.spread import spread
from quantgate_kernels.reference.step_plans import StepPlans
from quantgate_kernels.step_program import StepProgram
from quantgate_kernels.types import (
    AttentionBatch,
    DenseWeight,
    KVLayer,
    LinearPart,
    LinearWeight,
    ReorderedWeight,
    StackedWeight,
    StoredPart,
    StoredWeight,
)


class ReferenceKernels(KernelSet):
    """Implements `KernelSet`."""

    name = "reference"

    def __init__(self) -> None:
        self.paths: dict[str, str] = {}
        self._plans = StepPlans(plan_attention)

    @property
    @override
    def multiplies_bfloat16(self) -> bool:
        return torch_multiplies_bfloat16()

    @override
    def stored_form(self, weight: LinearWeight, compute: torch.dtype, *, split: bool = False) -> StoredWeight:
        if isinstance(weight, ReorderedWeight):
            check_order(weight)
            stored = self.stored_form(weight.weight, compute, split=split)
            assert not isinstance(stored, ReorderedWeight | StackedWeight)
            return ReorderedWeight(stored, weight.order)
        if isinstance(weight, StackedWeight):
            return StackedWeight(tuple(self._stored_part(part, compute) for part in weight.parts))
        return stored_form(weight, compute)

    def _stored_part(self, weight: LinearPart, compute: torch.dtype) -> StoredPart:
        stored = self.stored_form(weight, compute)
        assert not isinstance(stored, StackedWeight)
        return stored

    @override
    def stored_table(self, weight: DenseWeight, compute: torch.dtype) -> TableWeight:
        return weight

    @override
    def embed(self, token_ids: Tensor, table: TableWeight, compute: torch.dtype) -> Tensor:
        assert isinstance(table, DenseWeight)
        return table.weight.index_select(0, token_ids).to(compute)

    @override
    def step_program(self, weights: DecoderWeights, shape: DecoderShape, angles: Angles) -> StepProgram | None:
        return None

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float, residual: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """y = x / sqrt(mean(x^2) + eps) * weight in float32, rounded once (Zhang, Sennrich 2019, arXiv:1910.07467)."""
        self.paths["rms_norm"] = "torch"
        total = x if residual is None else x + residual
        return F.rms_norm(total, weight.shape, weight, eps), total

    def rope_and_write_kv(
        self, qkv: Tensor, cos: Tensor, sin: Tensor, num_heads: int, num_kv_heads: int, cache: KVLayer, slots: Tensor
    ) -> Tensor:
        """Half-rotation rope in float32: (a, b) -> (a cos - b sin, b cos + a sin) over the halves of a head.

        An INT8 cache is given the float32 keys: rounded to 16 bits first, they would be rounded twice. Its keys are
        spread, and so are the queries that look for them.
        """
        self.paths["rope_and_write_kv"] = path_over(cache, "torch")
        rows, head_dim = cos.shape
        heads = qkv.view(rows, num_heads + 2 * num_kv_heads, head_dim)
        wide = heads[:, : num_heads + num_kv_heads].float()
        half = head_dim // 2
        cos_half, sin_half = cos[:, None, :half], sin[:, None, :half]
        first, second = wide[..., :half], wide[..., half:]
        rotated_dtype = qkv.dtype if cache.key_scales is None else torch.float32
        rotated = torch.empty(wide.shape, dtype=rotated_dtype, device=qkv.device)
        rotated[..., :half] = torch.addcmul(first * cos_half, second, sin_half, value=-1)
        rotated[..., half:] = torch.addcmul(second * cos_half, first, sin_half)
        if cache.key_scales is not None:
            rotated = spread(rotated)
        write_rows(cache, slots, keys=rotated[:, num_heads:], values=heads[:, num_heads + num_kv_heads :])
        return rotated[:, :num_heads].to(qkv.dtype)

    def attention(
        self, q: Tensor, cache: KVLayer, batch: AttentionBatch, scale: float, window: int | None = None
    ) -> Tensor:
        return attend(q, cache, self._plans.of(batch, q.dtype, window), scale, self.paths)

    def silu_and_mul(self, gate_up: Tensor) -> Tensor:
        self.paths["silu_and_mul"] = "torch"
        gate, up = gate_up.chunk(2, dim=-1)
        return F.silu(gate).mul_(up)

    def linear(self, x: Tensor, weight: StoredWeight, bias: Tensor | None = None) -> Tensor:
        if isinstance(weight, ReorderedWeight):
            self.paths["reorder_inputs"] = "torch.index_select"
            return self.linear(x.index_select(1, weight.order), weight.weight, bias)
        if isinstance(weight, StackedWeight):
            product = torch.cat([self.linear(x, part) for part in weight.parts], dim=1)
        else:
            product = multiply(x, weight, self.paths)
        return product if bias is None else product + bias

    def copy_blocks(self, source: Tensor, target: Tensor, pairs: Tensor) -> None:
        self.paths["copy_blocks"] = "torch"
        read, written = pairs.long().unbind(1)
        target.index_copy_(1, written, source.index_select(1, read))

    def head(self, x: Tensor, weight: StoredWeight, *, exact: bool = False) -> Tensor:
        if isinstance(weight, DenseWeight):
            return head_logits(x, weight, self.paths, exact=exact)
        return self.linear(x.float(), weight)
