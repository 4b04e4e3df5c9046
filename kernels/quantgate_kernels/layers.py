"""A decoder's weights and sizes, as the layers that compute with them read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from quantgate_kernels.bnb.weights import BnbWeight
from quantgate_kernels.panel_weight import PanelWeight
from quantgate_kernels.types import DenseWeight, StackedWeight, StoredWeight

TableWeight = DenseWeight | PanelWeight
"""What an embedding is stored as, and a head of as many bits."""


@dataclass(frozen=True, slots=True)
class DecoderShape:
    """Sizes of a decoder. windows: for each layer, how many of the last tokens are seen; None: all.

    attention_scale: what the products of queries and keys are multiplied by.
    """

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    norm_eps: float
    attention_scale: float
    windows: tuple[int | None, ...]


class Angles(NamedTuple):
    """What rotary embeddings multiply by at each position: float32 [positions, head_dim], halves alike."""

    cosines: Tensor
    sines: Tensor


@dataclass(frozen=True, slots=True)
class Projection:
    """A linear layer: its weight in stored form, and its bias [out] where the checkpoint has one."""

    weight: StoredWeight
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
    """embedding and head: [vocab, hidden] each, one object where the model ties them and no scheme parts them."""

    embedding: TableWeight
    layers: tuple[DecoderLayer, ...]
    final_norm: Tensor
    head: StoredWeight

    @property
    def device(self) -> torch.device:
        return self.final_norm.device

    def projections(self) -> Iterator[Projection]:
        for layer in self.layers:
            yield from layer.projections()

    @property
    def recordable(self) -> bool:
        """See `KernelSet.recordable`: bitsandbytes asks the device for the outliers of a product before it goes on."""
        weights = [self.head, *(projection.weight for projection in self.projections())]
        return not any(isinstance(part, BnbWeight) for weight in weights for part in _parts(weight))

    def stored_bytes(self) -> int:
        """Bytes of every tensor, each counted once: a tied head is the embedding."""
        tensors = [*self.embedding.tensors(), self.final_norm, *self.head.tensors()]
        for layer in self.layers:
            tensors += layer.tensors()
        once = {id(tensor): tensor for tensor in tensors}.values()
        return sum(tensor.numel() * tensor.element_size() for tensor in once)


def _parts(weight: StoredWeight) -> tuple[StoredWeight, ...]:
    return weight.parts if isinstance(weight, StackedWeight) else (weight,)
