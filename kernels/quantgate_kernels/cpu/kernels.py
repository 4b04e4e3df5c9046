"""The `cpu` kernel set: C++ for what stands between the matrix products, and torch's products as in `reference`.

A decode step of a small model is hundreds of operations on a few thousand numbers each: as torch operations, they cost
more in calls and passes over memory than all of its products.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from quantgate_kernels.cpu.expanded_products import ExpandedProducts
from quantgate_kernels.cpu.library import Functions, load_functions
from quantgate_kernels.reference.attention import PrefillChunk, attend_prefill, plan_prefill
from quantgate_kernels.reference.head import CANDIDATES, FEW_ROWS
from quantgate_kernels.reference.kernels import ReferenceKernels
from quantgate_kernels.reference.paged_rows import path_over
from quantgate_kernels.reference.step_plans import StepPlans
from quantgate_kernels.types import AttentionBatch, DenseWeight, KVLayer, StoredWeight

PATH = "cpp"


@dataclass(frozen=True, slots=True)
class _Step:
    """What a step's layers share: the chunks that torch attends, and whether anything decodes."""

    prefill: tuple[PrefillChunk, ...]
    decodes: bool


class CpuKernels(ReferenceKernels):
    """Implements `KernelSet` for tensors on the CPU. Operands that the C++ does not read take the reference's path.

    Raises KernelSetUnavailableError where the C++ can neither be found in the cache nor compiled.
    """

    name = "cpu"

    def __init__(self) -> None:
        super().__init__()
        self._functions = load_functions()
        self._expanded = ExpandedProducts(self._functions[torch.bfloat16])
        self._steps = StepPlans(_plan_step)

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float, residual: Tensor | None = None) -> tuple[Tensor, Tensor]:
        functions = self._reading(x, weight) if residual is None else self._reading(x, weight, residual)
        if functions is None:
            return super().rms_norm(x, weight, eps, residual)
        self.paths["rms_norm"] = PATH
        normalised = torch.empty_like(x)
        rows, width = x.shape
        total, added, summed = x, None, None
        if residual is not None:
            total = torch.empty_like(x)
            added, summed = residual.data_ptr(), total.data_ptr()
        functions.rms_norm(
            x.data_ptr(), added, weight.data_ptr(), eps, normalised.data_ptr(), summed,
            rows, width, torch.get_num_threads(),
        )  # fmt: skip
        return normalised, total

    def rope_and_write_kv(
        self, qkv: Tensor, cos: Tensor, sin: Tensor, num_heads: int, num_kv_heads: int, cache: KVLayer, slots: Tensor
    ) -> Tensor:
        functions = self._reading_cached(qkv, cache)
        if functions is None:
            return super().rope_and_write_kv(qkv, cos, sin, num_heads, num_kv_heads, cache, slots)
        self.paths["rope_and_write_kv"] = path_over(cache, PATH)
        rows, head_dim = cos.shape
        queries = torch.empty((rows, num_heads, head_dim), dtype=qkv.dtype)
        functions.rope_and_write_kv(
            qkv.data_ptr(), cos.data_ptr(), sin.data_ptr(), slots.data_ptr(), queries.data_ptr(),
            *_addresses(cache), rows, num_heads, num_kv_heads, head_dim, torch.get_num_threads(),
        )  # fmt: skip
        return queries

    def attention(
        self, q: Tensor, cache: KVLayer, batch: AttentionBatch, scale: float, window: int | None = None
    ) -> Tensor:
        functions = self._reading_cached(q, cache)
        if functions is None:
            return super().attention(q, cache, batch, scale, window)
        step = self._steps.of(batch, q.dtype, window)
        rows, heads, head_dim = q.shape
        output = torch.empty((rows, heads * head_dim), dtype=q.dtype)
        if step.decodes:
            self.paths["attention.decode"] = path_over(cache, PATH)
            functions.decode_attention(
                q.data_ptr(), *_addresses(cache), batch.query_starts.data_ptr(),
                batch.context_lens.data_ptr(), batch.block_tables.data_ptr(), output.data_ptr(),
                batch.num_sequences, heads, cache.keys.shape[2], head_dim, batch.block_size,
                batch.block_tables.shape[1], window or 0, scale, torch.get_num_threads(),
            )  # fmt: skip
        if step.prefill:
            attend_prefill(q, cache, step.prefill, scale, output, self.paths)
        return output

    def silu_and_mul(self, gate_up: Tensor) -> Tensor:
        functions = self._reading(gate_up)
        if functions is None:
            return super().silu_and_mul(gate_up)
        self.paths["silu_and_mul"] = PATH
        rows, width = gate_up.shape[0], gate_up.shape[1] // 2
        out = torch.empty((rows, width), dtype=gate_up.dtype)
        functions.silu_and_mul(gate_up.data_ptr(), out.data_ptr(), rows, width, torch.get_num_threads())
        return out

    def linear(self, x: Tensor, weight: StoredWeight, bias: Tensor | None = None) -> Tensor:
        product = self._expanded.multiply(x, weight, self.paths)
        if product is None:
            return super().linear(x, weight, bias)
        return product if bias is None else product + bias

    def head(self, x: Tensor, weight: DenseWeight, *, exact: bool = False) -> Tensor:
        functions = self._reading(x, weight.weight)
        rescore = functions.head_rescore if functions is not None else None
        if exact or rescore is None or x.shape[0] > FEW_ROWS:
            return super().head(x, weight, exact=exact)
        self.paths[f"head.rows<={FEW_ROWS}"] = f"16-bit product by torch, best {CANDIDATES} in float32 by {PATH}"
        rounded = F.linear(x, weight.weight)
        logits = torch.empty(rounded.shape, dtype=torch.float32)
        rescore(
            x.data_ptr(), weight.weight.data_ptr(), rounded.data_ptr(), logits.data_ptr(),
            *x.shape, weight.shape[0], CANDIDATES, torch.get_num_threads(),
        )  # fmt: skip
        return logits

    def _reading(self, *operands: Tensor) -> Functions | None:
        """The functions that read these operands: of one dtype, and dense in memory."""
        dtype = operands[0].dtype
        for operand in operands:
            if operand.dtype != dtype or not operand.is_contiguous():
                return None
        return self._functions.get(dtype)

    def _reading_cached(self, rows: Tensor, cache: KVLayer) -> Functions | None:
        """The functions that read these rows and this cache: numbers of the rows' type, or codes with their scales."""
        if cache.key_scales is None:
            return self._reading(rows, *cache.tensors())
        dense = all(tensor.is_contiguous() for tensor in cache.tensors())
        return self._reading(rows) if dense else None


def _addresses(cache: KVLayer) -> tuple[int | None, ...]:
    """Of keys, values, and their scales where there are any."""
    tensors = (cache.keys, cache.values, cache.key_scales, cache.value_scales)
    return tuple(None if tensor is None else tensor.data_ptr() for tensor in tensors)


def _plan_step(batch: AttentionBatch, dtype: torch.dtype, window: int | None) -> _Step:
    prefill = plan_prefill(batch, dtype, window)
    return _Step(prefill, decodes=len(prefill) < batch.num_sequences)
