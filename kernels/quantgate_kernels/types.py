"""What the kernels and the engine share: packed weights and the shape of a paged attention batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor

from quantgate_kernels.bnb.weights import BnbWeight
from quantgate_kernels.panel_weight import PanelWeight
from quantgate_kernels.word_weight import WordWeight


@dataclass(frozen=True, slots=True)
class DenseWeight:
    """A weight that is stored as it is multiplied: `weight` [out, in] in a floating dtype."""

    weight: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return self.weight.shape[0], self.weight.shape[1]

    @property
    def label(self) -> str:
        return dtype_name(self.weight.dtype)

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.weight,)


@dataclass(frozen=True, slots=True)
class DensePackedWeight:
    """The same weight in the order of oneDNN's blocks: `packed` [out, in], opaque to all but oneDNN's own operators."""

    packed: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return self.packed.shape[0], self.packed.shape[1]

    @property
    def label(self) -> str:
        return dtype_name(self.packed.dtype)

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.packed,)


@dataclass(frozen=True, slots=True)
class Int8ChannelWeight:
    """Symmetric INT8, one scale per output channel: `weight[o, i] = codes[o, i] * scales[o]`.

    codes: int8 [out, in] in -127..127; scales: [out] in the activation dtype.
    """

    codes: Tensor
    scales: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return self.codes.shape[0], self.codes.shape[1]

    @property
    def label(self) -> str:
        return "int8"

    def tensors(self) -> tuple[Tensor, ...]:
        return self.codes, self.scales


@dataclass(frozen=True, slots=True)
class Int8DynamicWeight:
    """Symmetric INT8 as in `Int8ChannelWeight`, for activations that are quantized to INT8 too, token by token.

    codes: int8 [out, in] in -127..127; scales: float32 [out]. What a product with it is, to the bit:
    `reference/int8_dynamic.py`.
    """

    codes: Tensor
    scales: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return self.codes.shape[0], self.codes.shape[1]

    @property
    def label(self) -> str:
        return "int8-w8a8"

    def tensors(self) -> tuple[Tensor, ...]:
        return self.codes, self.scales


@dataclass(frozen=True, slots=True)
class Int4GroupWeight:
    """INT4, one scale per group of `group_size` inputs, two codes per byte; asymmetric where groups have zeros.

    `weight[o, g * group_size + i] = (code - zero) * scales[o, g]` with codes in 0..15 and zero = zeros[o, g], or 8.
    packed: uint8 [out, in / group_size, group_size / 2]; byte j of a group holds code j in its low nibble and
    code j + group_size / 2 in its high nibble, so that unpacking writes two contiguous halves.
    scales: [out, in / group_size] in the activation dtype, or in float16 where a checkpoint has them so.
    zeros: uint8 [out, in / group_size] in 0..15. None: 8 throughout.
    """

    packed: Tensor
    scales: Tensor
    group_size: int
    zeros: Tensor | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.packed.shape[0], self.packed.shape[1] * self.group_size

    @property
    def label(self) -> str:
        return _grouped_label("int4", self.group_size, self.zeros)

    def tensors(self) -> tuple[Tensor, ...]:
        return _without_none(self.packed, self.scales, self.zeros)


@dataclass(frozen=True, slots=True)
class Int8GroupWeight:
    """INT8, one scale per group of `group_size` inputs; asymmetric where groups have zeros.

    `weight[o, g * group_size + i] = (codes[o, g * group_size + i] - zero) * scales[o, g]`, zero = zeros[o, g], or 0.
    codes: int8 [out, in]. scales: as those of `Int4GroupWeight`. zeros: int8 [out, in / group_size]. None: all 0.
    """

    codes: Tensor
    scales: Tensor
    group_size: int
    zeros: Tensor | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.codes.shape[0], self.codes.shape[1]

    @property
    def label(self) -> str:
        return _grouped_label("int8", self.group_size, self.zeros)

    def tensors(self) -> tuple[Tensor, ...]:
        return _without_none(self.codes, self.scales, self.zeros)


INT4_TILE_OUTPUTS = 64


@dataclass(frozen=True, slots=True)
class Int4TiledWeight:
    """The same symmetric INT4 weight in the order that torch's CPU product reads on AVX-512: tiles of 64 outputs.

    tiles: uint8 [out / 64, in, 32]; byte j holds the code of output j of the tile in its low nibble and that of output
    j + 32 in its high nibble.
    scales_and_zeros: [in / group_size, out, 2] in the activation dtype; the zeros are 0, as the scheme is symmetric.
    """

    tiles: Tensor
    scales_and_zeros: Tensor
    group_size: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.tiles.shape[0] * INT4_TILE_OUTPUTS, self.tiles.shape[1]

    @property
    def label(self) -> str:
        return f"int4-g{self.group_size}"

    def tensors(self) -> tuple[Tensor, ...]:
        return self.tiles, self.scales_and_zeros


OrderedWeight = (
    DenseWeight
    | DensePackedWeight
    | Int8ChannelWeight
    | Int8DynamicWeight
    | Int8GroupWeight
    | Int4GroupWeight
    | Int4TiledWeight
    | BnbWeight
)
"""A weight whose inputs stand in the order of the activations."""

Inner = TypeVar("Inner", bound=OrderedWeight | PanelWeight | WordWeight, covariant=True)


@dataclass(frozen=True, slots=True)
class ReorderedWeight(Generic[Inner]):
    """A weight whose inputs stand in an order of their own: products with it are those of `x[:, order]` with `weight`.

    GPTQ with act-order quantizes the inputs that matter most first, and its checkpoints say of each input in which
    group it was (`g_idx`). Sorted by that, the inputs stand in ordinary groups again.
    order: int32 [in], contiguous; input i of `weight` is input order[i] of the activations, each of them once. What is
    stacked along the outputs has one order: a product reorders its rows once.
    """

    weight: Inner
    order: Tensor

    def __post_init__(self) -> None:
        if self.order.shape != self.weight.shape[1:] or self.order.dtype != torch.int32:
            has = f"{dtype_name(self.order.dtype)} {list(self.order.shape)}"
            raise ValueError(f"the order of a weight with {self.weight.shape[1]} inputs is int32 of these, not {has}")

    @property
    def shape(self) -> tuple[int, int]:
        return self.weight.shape

    @property
    def label(self) -> str:
        return self.weight.label

    def tensors(self) -> tuple[Tensor, ...]:
        return *self.weight.tensors(), self.order


LinearPart = OrderedWeight | ReorderedWeight[OrderedWeight]
StoredPart = LinearPart | PanelWeight | WordWeight | ReorderedWeight[OrderedWeight | PanelWeight | WordWeight]
Part = TypeVar("Part", bound=StoredPart, covariant=True)


@dataclass(frozen=True, slots=True)
class StackedWeight(Generic[Part]):
    """Weights of one input that no single form holds: their products stand side by side."""

    parts: tuple[Part, ...]

    @property
    def shape(self) -> tuple[int, int]:
        return sum(part.shape[0] for part in self.parts), self.parts[0].shape[1]

    @property
    def label(self) -> str:
        return ", ".join(dict.fromkeys(part.label for part in self.parts))

    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(tensor for part in self.parts for tensor in part.tensors())


LinearWeight = LinearPart | StackedWeight[LinearPart]
StoredWeight = StoredPart | StackedWeight[StoredPart]
"""What a kernel set may keep a weight as."""


def _grouped_label(codes: str, group_size: int, zeros: Tensor | None) -> str:
    return f"{codes}-g{group_size}" + ("" if zeros is None else "-asym")


def _without_none(*tensors: Tensor | None) -> tuple[Tensor, ...]:
    return tuple(tensor for tensor in tensors if tensor is not None)


def stored_bytes(weight: StoredWeight) -> int:
    """Bytes that the weight's tensors really occupy, scales included."""
    return sum(tensor.numel() * tensor.element_size() for tensor in weight.tensors())


@dataclass(frozen=True, slots=True)
class AttentionBatch:
    """One step's rows, ragged over sequences, and where their keys and values live.

    For S sequences and T rows (the new tokens of all sequences, back to back):
    query_starts:  int32 [S + 1], row range of each sequence
    context_lens:  int32 [S], tokens of the sequence after this step (earlier ones in the cache included)
    block_tables:  int32 [S, max_blocks], physical block of each logical block, padded with 0
    slots:         int64 [T], physical slot (block * block_size + offset) where each new row's K and V go
    positions:     int64 [T], position of each row in its sequence
    The `*_host` copies are plain lists, so that a kernel that loops over sequences reads no tensor element by element.
    """

    query_starts: Tensor
    context_lens: Tensor
    block_tables: Tensor
    slots: Tensor
    positions: Tensor
    query_starts_host: tuple[int, ...]
    context_lens_host: tuple[int, ...]
    block_size: int

    @property
    def num_sequences(self) -> int:
        return len(self.context_lens_host)

    @property
    def num_rows(self) -> int:
        return self.query_starts_host[-1]


@dataclass(frozen=True, slots=True)
class KVLayer:
    """One layer's cache: keys and values [num_blocks, block_size, kv_heads, head_dim] in the activation dtype.

    With scales, float32 [num_blocks, block_size, kv_heads], they are symmetric int8 codes in -127..127, and each number
    is its code times the scale of its token and head. Keys then stand in a basis of their own, in which
    `KernelSet.rope_and_write_kv` returns queries too. Both scales are there, or none.
    """

    keys: Tensor
    values: Tensor
    key_scales: Tensor | None = None
    value_scales: Tensor | None = None

    def tensors(self) -> tuple[Tensor, ...]:
        """All that a copy of a block has to carry; the first dimension of each is that of blocks."""
        scales = (self.key_scales, self.value_scales)
        return self.keys, self.values, *(tensor for tensor in scales if tensor is not None)


def dtype_name(dtype: torch.dtype) -> str:
    """`torch.bfloat16` -> `bfloat16`, for manifests and reports."""
    return str(dtype).removeprefix("torch.")
