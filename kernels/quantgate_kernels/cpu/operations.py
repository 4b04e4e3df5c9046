"""What stands between a step's matrix products, each operation a call of C++; the products are torch's.

Steps in 16 bits are one call (`step_program`). These operations serve what computes in float32, weights that lie in no
panels, and the deterministic variant, which has products of its own.
"""

from __future__ import annotations

import torch
from torch import Tensor
from typing_extensions import override

from quantgate_kernels.cpu.library import Functions, load_functions
from quantgate_kernels.reference.kernels import ReferenceKernels
from quantgate_kernels.reference.paged_rows import path_over
from quantgate_kernels.types import (
    AttentionBatch,
    KVLayer,
    LinearWeight,
    ReorderedWeight,
    StackedWeight,
    StoredWeight,
)

PATH = "cpp"


class CpuOperations(ReferenceKernels):
    """Operands that the C++ does not read take the reference's path.

    Raises KernelSetUnavailableError where the C++ can neither be found in the cache nor compiled.
    """

    def __init__(self) -> None:
        super().__init__()
        self._functions = load_functions()
        self._torch_multiplies_bfloat16 = super().multiplies_bfloat16

    @property
    @override
    def multiplies_bfloat16(self) -> bool:
        """With AVX2 the C++ widens as it reads: several times as fast as float32 by torch (docs/decisions/0002)."""
        return self._torch_multiplies_bfloat16 or bool(torch.cpu.get_capabilities().get("avx2", False))

    @override
    def stored_form(self, weight: LinearWeight, compute: torch.dtype, *, split: bool = False) -> StoredWeight:
        return super().stored_form(weight, self._of_torch(compute), split=split)

    @override
    def linear(self, x: Tensor, weight: StoredWeight, bias: Tensor | None = None) -> Tensor:
        """By torch, in a type that it multiplies; parts of a weight come back here or to the C++ one by one."""
        if isinstance(weight, ReorderedWeight | StackedWeight):
            return super().linear(x, weight, bias)
        return super().linear(x.to(self._of_torch(x.dtype)), weight, bias).to(x.dtype)

    @override
    def head(self, x: Tensor, weight: StoredWeight, *, exact: bool = False) -> Tensor:
        return super().head(x.to(self._of_torch(x.dtype)), weight, exact=exact)

    def _of_torch(self, dtype: torch.dtype) -> torch.dtype:
        emulated = dtype == torch.bfloat16 and not self._torch_multiplies_bfloat16
        return torch.float32 if emulated else dtype

    @override
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

    @override
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

    @override
    def attention(
        self, q: Tensor, cache: KVLayer, batch: AttentionBatch, scale: float, window: int | None = None
    ) -> Tensor:
        functions = self._reading_cached(q, cache)
        if functions is None:
            return super().attention(q, cache, batch, scale, window)
        self.paths["attention"] = path_over(cache, PATH)
        rows, heads, head_dim = q.shape
        output = torch.empty((rows, heads * head_dim), dtype=q.dtype)
        functions.attention(
            q.data_ptr(), *_addresses(cache), batch.query_starts.data_ptr(),
            batch.context_lens.data_ptr(), batch.block_tables.data_ptr(), output.data_ptr(),
            batch.num_sequences, heads, cache.keys.shape[2], head_dim, batch.block_size,
            batch.block_tables.shape[1], window or 0, scale, torch.get_num_threads(),
        )  # fmt: skip
        return output

    @override
    def silu_and_mul(self, gate_up: Tensor) -> Tensor:
        functions = self._reading(gate_up)
        if functions is None:
            return super().silu_and_mul(gate_up)
        self.paths["silu_and_mul"] = PATH
        rows, width = gate_up.shape[0], gate_up.shape[1] // 2
        out = torch.empty((rows, width), dtype=gate_up.dtype)
        functions.silu_and_mul(gate_up.data_ptr(), out.data_ptr(), rows, width, torch.get_num_threads())
        return out

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
