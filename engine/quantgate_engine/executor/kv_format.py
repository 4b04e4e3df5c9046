"""How the cache stores keys and values, and the bytes that this takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from quantgate_engine.kv.settings import KVDtypeName
from quantgate_engine.model.config import DecoderConfig
from quantgate_kernels.huge_pages import prefer_huge_pages
from quantgate_kernels.types import KVLayer, dtype_name

SCALE_DTYPE = torch.float32


class KVMemory(NamedTuple):
    """layers: as kernels read and write it. planes: the same memory as copies of blocks take it, see `KVPlane`."""

    layers: tuple[KVLayer, ...]
    planes: tuple[Tensor, ...]


class KVPlane(NamedTuple):
    """Of one kind of number, what blocks have, [parts, blocks, *row]: part 2n is layer n's keys, 2n + 1 its values."""

    parts: int
    row: tuple[int, ...]
    dtype: torch.dtype

    @property
    def block_bytes(self) -> int:
        return self.parts * math.prod(self.row) * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class KVFormat:
    """dtype: of the stored numbers; scaled: each token and KV head has a scale for its key and one for its value."""

    dtype: torch.dtype
    scaled: bool = False

    @property
    def name(self) -> str:
        return dtype_name(self.dtype)

    def bytes_per_token(self, model: DecoderConfig) -> int:
        """layers x KV heads x 2 (key and value) x bytes of a row, which is head_dim numbers and the scale, if any."""
        scale_bytes = SCALE_DTYPE.itemsize if self.scaled else 0
        return model.num_layers * model.num_kv_heads * 2 * (model.head_dim * self.dtype.itemsize + scale_bytes)

    def planes(self, model: DecoderConfig, block_size: int) -> tuple[KVPlane, ...]:
        """The stored numbers, then their scales, if any."""
        parts, tokens = 2 * model.num_layers, (block_size, model.num_kv_heads)
        numbers = KVPlane(parts, (*tokens, model.head_dim), self.dtype)
        return (numbers, KVPlane(parts, tokens, SCALE_DTYPE)) if self.scaled else (numbers,)

    def allocate(self, model: DecoderConfig, num_blocks: int, block_size: int, device: torch.device) -> KVMemory:
        """Zeroing touches all of the memory here, so that none is taken in a step."""
        planes = tuple(
            prefer_huge_pages(torch.empty(parts, num_blocks, *row, dtype=dtype, device=device)).zero_()
            for parts, row, dtype in self.planes(model, block_size)
        )
        layers = (tuple(part for plane in planes for part in plane[at : at + 2]) for at in range(0, len(planes[0]), 2))
        return KVMemory(tuple(KVLayer(*tensors) for tensors in layers), planes)


KV_FORMATS: dict[KVDtypeName, Callable[[torch.dtype], KVFormat]] = {
    "auto": KVFormat,
    "int8": lambda _compute_dtype: KVFormat(torch.int8, scaled=True),
}
"""By setting, what it makes of the dtype of the activations."""
