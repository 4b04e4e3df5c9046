"""A weight of 4-bit codes that index a table, scaled by block: what bitsandbytes stores as NF4 and FP4."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class TableCodes:
    """Value i of the flat, row-major weight is `table[codes[i]] * absmax[i // block_size]`.

    codes: uint8 [out, in] in 0..15. table: float32 [16]. absmax: float32 [blocks]; the last block may be short.
    """

    codes: Tensor
    table: Tensor
    absmax: Tensor
    block_size: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.codes.shape[0], self.codes.shape[1]

    def dequantize(self) -> Tensor:
        """-> float32 [out, in]: what the codes stand for, by definition."""
        values = self.table[self.codes.flatten().int()]
        scales = self.absmax.repeat_interleave(self.block_size)[: values.numel()]
        return (values * scales).view(self.codes.shape)


def nearest_codes(values: Tensor, table: Tensor) -> Tensor:
    """float32 [...], table float32 [n <= 256] in any order -> uint8 [...]: the index of the nearest entry.

    A value midway between two takes the lesser; of equal entries (FP4 has 0 and -0) it may be either.
    """
    ordered, order = torch.sort(table)
    between = (ordered[1:] + ordered[:-1]) / 2
    return order.to(torch.uint8)[torch.bucketize(values, between)]
