"""Weights of 4 and 8 bits as the GPU kernels store them: words of 32 bits that become pairs of 16-bit numbers.

A matrix instruction takes pairs of neighbours along the inputs. So a word keeps the two of a pair 16 bits apart: one
shift and one mask put both where a register of two 16-bit numbers wants them, and none is moved again.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from quantgate_kernels.int4_packing import unpack_groups
from quantgate_kernels.types import Int4GroupWeight, Int8ChannelWeight

PAIR_BITS = 16
WORD_BITS = 32
LOAD_BYTES = 16
"""What a thread reads at once; rows of words are so padded."""

GROUP_SIZES = (32, 64, 128, 256)
"""Each divides the tiles of the launch table, or is a multiple of them."""


@dataclass(frozen=True, slots=True)
class WordWeight:
    """`weight[o, i] = (code - zero) * scale`, with zero 8 for codes of 4 bits and 128 for those of 8.

    words: int32 [out, inputs * bits / 32, padded to 16 bytes]; of the codes of a word, 2j has its lowest bit at
    bits * j, and 2j + 1 at bits * j + 16. Another order of inputs is a matter of the rows that meet them.
    scales: [inputs / group_size, out] in the activation dtype, so that programs read them side by side, or [out] where
    group_size is None; zeros of schemes that are not symmetric would stand beside them.
    """

    words: Tensor
    scales: Tensor
    inputs: int
    group_size: int | None
    bits: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.words.shape[0], self.inputs

    @property
    def label(self) -> str:
        return "int8" if self.group_size is None else f"int4-g{self.group_size}"

    def tensors(self) -> tuple[Tensor, ...]:
        return self.words, self.scales


def words_of_int4(weight: Int4GroupWeight) -> WordWeight:
    if weight.group_size not in GROUP_SIZES:
        raise ValueError(f"groups of {weight.group_size} inputs have no kernel; {GROUP_SIZES} have")
    words = _packed(unpack_groups(weight), bits=4)
    return WordWeight(words, weight.scales.t().contiguous(), weight.shape[1], weight.group_size, bits=4)


def words_of_int8(weight: Int8ChannelWeight) -> WordWeight:
    codes = weight.codes.view(torch.uint8) ^ 128
    return WordWeight(_packed(codes, bits=8), weight.scales, weight.shape[1], group_size=None, bits=8)


def _packed(codes: Tensor, bits: int) -> Tensor:
    """codes uint8 [out, in] -> words int32 [out, ...]; inputs that pad a row meet no number of the activations."""
    outputs, inputs = codes.shape
    codes_at_once = LOAD_BYTES * 8 // bits
    padded = torch.nn.functional.pad(codes, (0, -inputs % codes_at_once))
    pairs = padded.view(outputs, -1, PAIR_BITS // bits, 2)
    words = torch.zeros(pairs.shape[:2], dtype=torch.int32, device=codes.device)
    for pair in range(PAIR_BITS // bits):
        for place in range(2):
            words |= pairs[:, :, pair, place].to(torch.int32) << (bits * pair + PAIR_BITS * place)
    return words
