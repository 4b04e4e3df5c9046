"""Weights of 4 and 8 bits from the forms in which schemes quantize to words of 32 bits."""

from __future__ import annotations

import torch
from torch import Tensor

from quantgate_kernels.int4_packing import unpack_groups
from quantgate_kernels.types import Int4GroupWeight, Int8ChannelWeight
from quantgate_kernels.word_weight import PAIR_BITS, WordWeight

LOAD_BYTES = 16
"""What a thread reads at once; rows of words are so padded."""

GROUP_SIZES = (32, 64, 128, 256)
"""Each divides the tiles of the launch table, or is a multiple of them."""


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
