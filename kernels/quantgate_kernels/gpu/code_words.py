"""Weights of 4 and 8 bits from the forms in which schemes quantize to words of 32 bits."""

from __future__ import annotations

import torch
from torch import Tensor

from quantgate_kernels.int4_packing import unpack_groups
from quantgate_kernels.types import Int4GroupWeight, Int8ChannelWeight, Int8GroupWeight
from quantgate_kernels.word_weight import PAIR_BITS, WordWeight

LOAD_BYTES = 16
"""What a thread reads at once; rows of words are so padded."""

GROUP_SIZES = (32, 64, 128, 256)
"""Each divides the tiles of the launch table, or is a multiple of them."""

SIGN = 128
"""Turned in codes of 8 bits, and in their zeros: from -128..127 to 0..255 in the same order."""


def fits_words(weight: Int4GroupWeight | Int8GroupWeight) -> bool:
    """Groups are of a size that has a kernel, or whole rows."""
    return weight.group_size in (*GROUP_SIZES, weight.shape[1])


def words_of_int4(weight: Int4GroupWeight) -> WordWeight:
    return _grouped(weight, unpack_groups(weight), weight.zeros, bits=4)


def words_of_int8_groups(weight: Int8GroupWeight) -> WordWeight:
    zeros = None if weight.zeros is None else _unsigned(weight.zeros)
    return _grouped(weight, _unsigned(weight.codes), zeros, bits=8)


def words_of_int8(weight: Int8ChannelWeight) -> WordWeight:
    return WordWeight(_packed(_unsigned(weight.codes), bits=8), weight.scales, weight.shape[1], None, bits=8)


def _grouped(weight: Int4GroupWeight | Int8GroupWeight, codes: Tensor, zeros: Tensor | None, bits: int) -> WordWeight:
    """codes and zeros in uint8."""
    if not fits_words(weight):
        raise ValueError(f"groups of {weight.group_size} inputs have no kernel; {GROUP_SIZES} and whole rows have")
    inputs = weight.shape[1]
    whole_rows = weight.group_size == inputs and inputs not in GROUP_SIZES
    return WordWeight(
        words=_packed(codes, bits),
        scales=_by_group(weight.scales, whole_rows),
        inputs=inputs,
        group_size=None if whole_rows else weight.group_size,
        bits=bits,
        zeros=None if zeros is None else _by_group(zeros, whole_rows),
    )


def _by_group(of_groups: Tensor, whole_rows: bool) -> Tensor:
    """[out, groups] -> [groups, out], or [out] of whole rows."""
    return of_groups.t().contiguous()[0] if whole_rows else of_groups.t().contiguous()


def _unsigned(signed: Tensor) -> Tensor:
    return signed.view(torch.uint8) ^ SIGN


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
