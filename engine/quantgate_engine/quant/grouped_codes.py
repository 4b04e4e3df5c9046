"""A quantized weight by itself: codes, and for each group of inputs a scale and a zero. Packed by nobody yet.

Quantizers make it, formats of checkpoints pack and unpack it, kernels store it in forms of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

CODE_BITS = (2, 3, 4, 8)


@dataclass(frozen=True, slots=True)
class GroupedCodes:
    """`weight[o, i] = (codes[o, i] - zeros[o, g]) * scales[o, g]`, where g is the group of input i.

    codes: uint8 [out, in] in 0..2**bits - 1. scales: [out, groups] in a floating dtype, as it is stored.
    zeros: uint8 [out, groups] in 0..2**bits - 1; 2**(bits - 1) throughout where the grid is symmetric.
    group_of_input: int64 [in]. None: inputs stand in the order of their groups, all of one size.
    """

    codes: Tensor
    scales: Tensor
    zeros: Tensor
    bits: int
    group_of_input: Tensor | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.codes.shape[0], self.codes.shape[1]

    @property
    def group_size(self) -> int:
        """Inputs of a group, where all have as many."""
        return self.codes.shape[1] // self.scales.shape[1]

    @property
    def is_symmetric(self) -> bool:
        return bool((self.zeros == middle_code(self.bits)).all())

    def to(self, device: torch.device) -> GroupedCodes:
        groups = self.group_of_input
        return GroupedCodes(
            codes=self.codes.to(device),
            scales=self.scales.to(device),
            zeros=self.zeros.to(device),
            bits=self.bits,
            group_of_input=None if groups is None else groups.to(device),
        )

    def dequantize(self) -> Tensor:
        """-> float32 [out, in]: what the codes stand for, by definition."""
        groups = self.groups()
        zeros, scales = self.zeros[:, groups].float(), self.scales[:, groups].float()
        return (self.codes.float() - zeros) * scales

    def groups(self) -> Tensor:
        """int64 [in]: the group of each input."""
        if self.group_of_input is not None:
            return self.group_of_input
        return torch.arange(self.codes.shape[1], device=self.codes.device) // self.group_size


def middle_code(bits: int) -> int:
    """The code that stands for 0 on a symmetric grid."""
    return 1 << (bits - 1)
