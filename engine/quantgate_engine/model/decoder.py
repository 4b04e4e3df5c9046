"""The dense decoder: pre-norm attention and gated feed-forward blocks, written once for every kernel set and scheme."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from quantgate_engine.model.config import DecoderConfig
from quantgate_engine.model.rope import RotaryTable
from quantgate_kernels.kernel_set import KernelSet
from quantgate_kernels.types import AttentionBatch, DenseWeight, KVLayer, LinearWeight


@dataclass(frozen=True, slots=True)
class Projection:
    """A linear layer: its weight in stored form, and its bias [out] where the checkpoint has one."""

    weight: LinearWeight
    bias: Tensor | None


@dataclass(frozen=True, slots=True)
class HeadNorm:
    """Norm weights [head_dim] of queries and keys, applied per head before rope (Qwen3)."""

    query: Tensor
    key: Tensor


@dataclass(frozen=True, slots=True)
class DecoderLayer:
    """One layer's weights; queries, keys and values are one product, and so are gate and up."""

    attention_norm: Tensor
    query_key_value: Projection
    head_norm: HeadNorm | None
    attention_output: Projection
    ffn_norm: Tensor
    gate_up: Projection
    down: Projection

    def projections(self) -> tuple[Projection, ...]:
        return self.query_key_value, self.attention_output, self.gate_up, self.down

    def tensors(self) -> list[Tensor]:
        tensors = [self.attention_norm, self.ffn_norm]
        if self.head_norm is not None:
            tensors += [self.head_norm.query, self.head_norm.key]
        for projection in self.projections():
            tensors += projection.weight.tensors()
            if projection.bias is not None:
                tensors.append(projection.bias)
        return tensors


@dataclass(frozen=True, slots=True)
class DecoderWeights:
    """embedding [vocab, hidden]; head shares its tensor where the model ties them."""

    embedding: Tensor
    layers: tuple[DecoderLayer, ...]
    final_norm: Tensor
    head: DenseWeight

    def projections(self) -> Iterator[Projection]:
        for layer in self.layers:
            yield from layer.projections()

    def stored_bytes(self) -> int:
        """Bytes of every tensor, each counted once: a tied head is the embedding."""
        tensors = [self.embedding, self.final_norm, *self.head.tensors()]
        for layer in self.layers:
            tensors += layer.tensors()
        once = {id(tensor): tensor for tensor in tensors}.values()
        return sum(tensor.numel() * tensor.element_size() for tensor in once)


class Decoder:
    """Hidden states and logits of a step's rows; the KV cache belongs to the caller."""

    def __init__(
        self,
        config: DecoderConfig,
        weights: DecoderWeights,
        kernels: KernelSet,
        compute_dtype: torch.dtype,
        max_positions: int,
    ) -> None:
        self.config = config
        self.weights = weights
        self._kernels = kernels
        self._compute_dtype = compute_dtype
        self._scale = config.head_dim**-0.5
        rotation = config.rope.rotation(config.head_dim, max_positions)
        self._rope = RotaryTable(rotation, max_positions, weights.embedding.device)
        # A window over the longest sequence hides nothing: such a layer takes the cheaper path of whole contexts.
        self._windows = [None if (window or 0) >= max_positions else window for window in config.windows]

    def hidden_states(self, token_ids: Tensor, cache: Sequence[KVLayer], batch: AttentionBatch) -> Tensor:
        """token_ids int64 [T] -> [T, hidden] before the final norm; writes the rows' keys and values to the cache."""
        kernels, eps = self._kernels, self.config.rms_norm_eps
        cos, sin = self._rope.lookup(batch.positions)
        residual = self.weights.embedding.index_select(0, token_ids).to(self._compute_dtype)
        branch: Tensor | None = None
        for layer, kv, window in zip(self.weights.layers, cache, self._windows, strict=True):
            normalised, residual = self._add_and_norm(residual, branch, layer.attention_norm)
            qkv = kernels.linear(normalised, layer.query_key_value.weight, layer.query_key_value.bias)
            if layer.head_norm is not None:
                qkv = self._norm_heads(qkv, layer.head_norm)
            q = kernels.rope_and_write_kv(
                qkv, cos, sin, self.config.num_heads, self.config.num_kv_heads, kv, batch.slots
            )
            attended = kernels.attention(q, kv, batch, self._scale, window)
            branch = kernels.linear(attended, layer.attention_output.weight, layer.attention_output.bias)
            normalised, residual = kernels.rms_norm(branch, layer.ffn_norm, eps, residual)
            gated = kernels.silu_and_mul(kernels.linear(normalised, layer.gate_up.weight, layer.gate_up.bias))
            branch = kernels.linear(gated, layer.down.weight, layer.down.bias)
        return residual if branch is None else residual + branch

    def logits(self, hidden: Tensor, *, exact: bool = False) -> Tensor:
        """[R, hidden] -> float32 [R, vocab]. Callers pass the rows that they need, not all rows of a step.

        exact: every logit in float32, as probabilities need it; else the likeliest at least, as choosing a token does.
        """
        normalised, _ = self._kernels.rms_norm(hidden, self.weights.final_norm, self.config.rms_norm_eps)
        return self._kernels.head(normalised, self.weights.head, exact=exact)

    def _add_and_norm(self, residual: Tensor, branch: Tensor | None, weight: Tensor) -> tuple[Tensor, Tensor]:
        if branch is None:
            return self._kernels.rms_norm(residual, weight, self.config.rms_norm_eps)
        return self._kernels.rms_norm(branch, weight, self.config.rms_norm_eps, residual)

    def _norm_heads(self, qkv: Tensor, norm: HeadNorm) -> Tensor:
        """qkv [T, (heads + 2 kv_heads) * head_dim]: normalises each query head and each key head on its own."""
        config, eps = self.config, self.config.rms_norm_eps
        sizes = (config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim)
        query, key, value = torch.split(qkv, [*sizes, sizes[1]], dim=-1)
        query, _ = self._kernels.rms_norm(query.reshape(-1, config.head_dim), norm.query, eps)
        key, _ = self._kernels.rms_norm(key.reshape(-1, config.head_dim), norm.key, eps)
        return torch.cat((query.view(-1, sizes[0]), key.view(-1, sizes[1]), value), dim=-1)
