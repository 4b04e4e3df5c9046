"""bitsandbytes' second quantization: the maxima of blocks as 8-bit codes of a table, scaled by blocks of 256."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from quantgate_engine.quant.formats.table_codes import nearest_codes

NESTED_BLOCK_SIZE = 256


@dataclass(frozen=True, slots=True)
class NestedAbsmax:
    """`absmax[b] = table[codes[b]] * scales[b // block_size] + offset`.

    codes: uint8 [blocks]. table: float32 [256]. scales: float32 [ceil(blocks / block_size)].
    """

    codes: Tensor
    table: Tensor
    scales: Tensor
    offset: float
    block_size: int = NESTED_BLOCK_SIZE

    def dequantize(self) -> Tensor:
        """-> float32 [blocks]"""
        scales = self.scales.repeat_interleave(self.block_size)[: self.codes.numel()]
        return self.table[self.codes.int()] * scales + self.offset


def nest(absmax: Tensor) -> NestedAbsmax:
    """absmax float32 [blocks] -> codes of what is left of it without its mean."""
    offset = float(absmax.mean())
    centered = absmax - offset
    blocks = pad(centered, (0, -centered.numel() % NESTED_BLOCK_SIZE)).view(-1, NESTED_BLOCK_SIZE)
    scales = blocks.abs().amax(dim=1)
    table = dynamic_table()
    relative = blocks / torch.where(scales == 0, torch.ones_like(scales), scales).unsqueeze(1)
    return NestedAbsmax(nearest_codes(relative, table).flatten()[: absmax.numel()], table, scales, offset)


def dynamic_table() -> Tensor:
    """float32 [256], ascending, in -1..1: bitsandbytes' signed 8-bit table of seven decades, finer towards 1.

    Decade d (0: the least) is cut into 2**d parts of equal width between 0.1 and 1 times 10**(d - 6); the entries are
    their middles with both signs, and beside them 0 and 1.
    """
    entries = [torch.tensor([0.0, 1.0])]
    for decade in range(7):
        edges = torch.linspace(0.1, 1, 2**decade + 1)
        middles = (edges[1:] + edges[:-1]) / 2 * 10 ** (decade - 6)
        entries += [middles, -middles]
    return torch.cat(entries).sort().values
