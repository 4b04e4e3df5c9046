"""Weights of words in every form, made of codes and zeros, with what they stand for in float64."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from quantgate_kernels.gpu.code_words import words_of_int4, words_of_int8_groups
from quantgate_kernels.int4_packing import pack_groups
from quantgate_kernels.types import Int4GroupWeight, Int8GroupWeight
from quantgate_kernels.word_weight import WordWeight

SIGN = 128


@dataclass(frozen=True, slots=True)
class Formed:
    """exact: float64 [out, in]."""

    words: WordWeight
    exact: Tensor

    def multiplied(self, dtype: torch.dtype) -> Tensor:
        """In float64, as products with rows of that dtype take it: numbers of groups are rounded, of whole rows not."""
        return self.exact if self.words.group_size is None else self.exact.to(dtype).double()


def random_form(
    bits: int, outputs: int, inputs: int, group: int, scale_dtype: torch.dtype, *, zeros: bool, seed: int = 2
) -> Formed:
    """The lowest and the highest zero are among the zeros."""
    generator = torch.Generator().manual_seed(seed)
    codes = torch.randint(0, 1 << bits, (outputs, inputs), generator=generator)
    scales = (torch.rand(outputs, inputs // group, generator=generator) + 0.1).to(scale_dtype)
    of_groups = torch.randint(0, 1 << bits, scales.shape, generator=generator)
    of_groups.view(-1)[:2] = torch.tensor([0, (1 << bits) - 1])
    return formed(bits, codes, scales, of_groups if zeros else None)


def formed(bits: int, codes: Tensor, scales: Tensor, zeros: Tensor | None) -> Formed:
    """codes [out, in], scales and zeros [out, groups]; codes and zeros are integers from 0 on, for 8 bits too."""
    group = codes.shape[1] // scales.shape[1]
    steps = codes - (1 << (bits - 1) if zeros is None else zeros.repeat_interleave(group, 1))
    exact = steps.double() * scales.double().repeat_interleave(group, 1)
    return Formed(_words(group_weight(bits, codes, scales, zeros)), exact)


def group_weight(bits: int, codes: Tensor, scales: Tensor, zeros: Tensor | None) -> Int4GroupWeight | Int8GroupWeight:
    group = codes.shape[1] // scales.shape[1]
    if bits == 4:
        return pack_groups(codes.to(torch.uint8), scales, group, None if zeros is None else zeros.to(torch.uint8))
    signed = None if zeros is None else (zeros - SIGN).to(torch.int8)
    return Int8GroupWeight((codes - SIGN).to(torch.int8), scales, group, signed)


def _words(weight: Int4GroupWeight | Int8GroupWeight) -> WordWeight:
    return words_of_int4(weight) if isinstance(weight, Int4GroupWeight) else words_of_int8_groups(weight)
