"""Weights of 4 and 8 bits as the GPU kernels store them: words of 32 bits that become pairs of 16-bit numbers.

A matrix instruction takes pairs of neighbours along the inputs. So a word keeps the two of a pair 16 bits apart: one
shift and one mask put both where a register of two 16-bit numbers wants them, and none is moved again.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

PAIR_BITS = 16
WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class WordWeight:
    """`weight[o, i] = (code - zero) * scale`, where codes of both widths are 0 or more.

    words: int32 [out, inputs * bits / 32, padded to 16 bytes]; of the codes of a word, 2j has its lowest bit at
    bits * j, and 2j + 1 at bits * j + 16. Another order of inputs is a matter of the rows that meet them.
    scales: [inputs / group_size, out] in any dtype of 16 bits, so that programs read them side by side, or [out] where
    group_size is None: a group is a whole row.
    zeros: uint8, shaped as scales. None: 8 throughout for codes of 4 bits, 128 for those of 8.
    """

    words: Tensor
    scales: Tensor
    inputs: int
    group_size: int | None
    bits: int
    zeros: Tensor | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.words.shape[0], self.inputs

    @property
    def label(self) -> str:
        group = "" if self.group_size is None else f"-g{self.group_size}"
        return f"int{self.bits}{group}" + ("" if self.zeros is None else "-asym")

    def tensors(self) -> tuple[Tensor, ...]:
        return (self.words, self.scales) if self.zeros is None else (self.words, self.scales, self.zeros)
