"""How the cache stores keys and values, and the bytes that this takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from quantgate_engine.kv.settings import KVDtypeName
from quantgate_engine.model.config import DecoderConfig
from quantgate_kernels.huge_pages import prefer_huge_pages
from quantgate_kernels.types import KVLayer, dtype_name

SCALE_DTYPE = torch.float32


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

    def allocate(
        self, model: DecoderConfig, num_blocks: int, block_size: int, device: torch.device, *, pinned: bool = False
    ) -> tuple[KVLayer, ...]:
        """A cache, layer by layer. Zeroing touches all of its memory here, so that none is taken in a step.

        pinned: so that copies between it and a GPU wait for nothing.
        """
        rows = (num_blocks, block_size, model.num_kv_heads)

        def stored() -> torch.Tensor:
            numbers = torch.empty(*rows, model.head_dim, dtype=self.dtype, device=device, pin_memory=pinned)
            return prefer_huge_pages(numbers).zero_()

        def scales() -> torch.Tensor | None:
            return torch.zeros(rows, dtype=SCALE_DTYPE, device=device, pin_memory=pinned) if self.scaled else None

        return tuple(KVLayer(stored(), stored(), scales(), scales()) for _ in range(model.num_layers))


KV_FORMATS: dict[KVDtypeName, Callable[[torch.dtype], KVFormat]] = {
    "auto": KVFormat,
    "int8": lambda _compute_dtype: KVFormat(torch.int8, scaled=True),
}
"""By setting, what it makes of the dtype of the activations."""
