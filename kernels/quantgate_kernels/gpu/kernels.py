"""The `triton` kernel set, and its deterministic variant."""

from __future__ import annotations

import torch
from torch import Tensor
from typing_extensions import override

from quantgate_kernels.gpu.attention_plan import AttentionPlans
from quantgate_kernels.gpu.copy_blocks import copy_blocks
from quantgate_kernels.gpu.decode_attention import decode_attention
from quantgate_kernels.gpu.device import find_device
from quantgate_kernels.gpu.draw_tokens import draw_tokens
from quantgate_kernels.gpu.launch_table import LARGEST_GROUP, LARGEST_HEAD_DIM, decode_launch, prefill_launch
from quantgate_kernels.gpu.prefill_attention import prefill_attention
from quantgate_kernels.gpu.products import PATH, QuantizedProducts, words_of
from quantgate_kernels.gpu.rms_norm import rms_norm
from quantgate_kernels.gpu.rotate_and_write import rotate_and_write
from quantgate_kernels.gpu.silu_and_mul import silu_and_mul
from quantgate_kernels.gpu.split_sizes import split_size
from quantgate_kernels.kernel_set import DrawTokens
from quantgate_kernels.reference.deterministic import DeterministicReferenceKernels
from quantgate_kernels.reference.kernels import ReferenceKernels
from quantgate_kernels.reference.paged_rows import path_over
from quantgate_kernels.types import AttentionBatch, KVLayer, LinearWeight, StoredWeight


class TritonKernels(ReferenceKernels):
    """Implements `KernelSet` for GPUs: all by Triton but 16-bit products and the head, by torch."""

    name = "triton"
    recordable = True
    deterministic = False

    def __init__(self) -> None:
        """Raises KernelSetUnavailableError where there is no GPU for it."""
        super().__init__()
        self._device = find_device()
        self._products = QuantizedProducts(self._device, self.paths, deterministic=self.deterministic)
        self._attention_plans = AttentionPlans(split_decodes=not self.deterministic)

    @override
    def stored_form(self, weight: LinearWeight, compute: torch.dtype, *, split: bool = False) -> StoredWeight:
        words = words_of(weight, compute)
        return super().stored_form(weight, compute, split=split) if words is None else words

    @override
    def linear(self, x: Tensor, weight: StoredWeight, bias: Tensor | None = None) -> Tensor:
        product = self._products.multiply(x, weight)
        if product is None:
            # Reordered weights too: torch gathers the rows, then one of the products above multiplies. Gathering inside
            # the products would save that launch, which a recorded step repeats without the host. But every tile of
            # outputs would gather the rows again, number by number; now they come in wide copies while others multiply.
            return super().linear(x, weight, bias)
        return product if bias is None else product + bias

    @override
    def rms_norm(self, x: Tensor, weight: Tensor, eps: float, residual: Tensor | None = None) -> tuple[Tensor, Tensor]:
        self.paths["rms_norm"] = PATH
        return rms_norm(x, weight, eps, residual)

    @override
    def rope_and_write_kv(
        self, qkv: Tensor, cos: Tensor, sin: Tensor, num_heads: int, num_kv_heads: int, cache: KVLayer, slots: Tensor
    ) -> Tensor:
        self.paths["rope_and_write_kv"] = path_over(cache, PATH)
        return rotate_and_write(qkv, cos, sin, num_heads, num_kv_heads, cache, slots, fixed=self.deterministic)

    @override
    def attention(
        self, q: Tensor, cache: KVLayer, batch: AttentionBatch, scale: float, window: int | None = None
    ) -> Tensor:
        rows, heads, head_dim = q.shape
        kv_heads = cache.keys.shape[2]
        group = heads // kv_heads
        if head_dim > LARGEST_HEAD_DIM or group > LARGEST_GROUP:
            return super().attention(q, cache, batch, scale, window)
        self.paths["attention"] = path_over(cache, PATH)
        architecture = self._device.architecture
        launch = prefill_launch(architecture, cache.keys.element_size(), head_dim)
        plan = self._attention_plans.of(batch, launch.rows // group)
        attended = q.new_empty(rows, heads, head_dim)
        if plan.tiles is not None:
            prefill_attention(q, cache, batch, plan.tiles, scale, window, attended, architecture)
        if plan.decodes is not None:
            split = self._split_size(cache, plan.decodes.shape[0], plan.longest)
            decode_attention(q, cache, batch, plan.decodes, plan.longest, split, scale, window, attended, architecture)
        return attended.view(rows, heads * head_dim)

    def _split_size(self, cache: KVLayer, sequences: int, longest: int) -> int:
        _, _, kv_heads, head_dim = cache.keys.shape
        launch = decode_launch(self._device.architecture, cache.keys.element_size(), head_dim)
        return split_size(sequences, kv_heads, longest, self._device.processors, launch.num_warps)

    @override
    def copy_blocks(self, source: Tensor, target: Tensor, pairs: Tensor) -> None:
        self.paths["copy_blocks"] = PATH
        copy_blocks(source, target, pairs)

    @property
    @override
    def draws(self) -> DrawTokens:
        return self._draw_tokens

    def _draw_tokens(
        self, logits: Tensor, temperatures: Tensor, min_p: Tensor, seeds: Tensor, positions: Tensor
    ) -> Tensor:
        self.paths["draw_tokens"] = PATH
        return draw_tokens(logits, temperatures, min_p, seeds, positions)

    @override
    def silu_and_mul(self, gate_up: Tensor) -> Tensor:
        self.paths["silu_and_mul"] = PATH
        return silu_and_mul(gate_up)


class DeterministicTritonKernels(TritonKernels, DeterministicReferenceKernels):
    """Implements `KernelSet`: every row of every result depends on that row and its own context alone.

    Decodes walk over their context as prefills do, in tiles of one size; products with quantized weights have tiles and
    splits of one size, and others are torch's of one row each.
    """

    name = "triton-deterministic"
    deterministic = True
