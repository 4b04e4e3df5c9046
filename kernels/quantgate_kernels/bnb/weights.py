"""Weights as bitsandbytes quantizes and multiplies by them."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

NF4_BLOCK = 64
"""Inputs that share a scale."""


@dataclass(frozen=True, slots=True)
class BnbInt8Weight:
    """LLM.int8() (Dettmers et al. 2022, arXiv:2208.07339): `weight[o, i] = codes[o, i] * maxima[o] / 127`.

    codes: int8 [out, in] in -127..127; maxima: float32 [out].
    """

    codes: Tensor
    maxima: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return self.codes.shape[0], self.codes.shape[1]

    @property
    def label(self) -> str:
        return "bnb-int8"

    def tensors(self) -> tuple[Tensor, ...]:
        return self.codes, self.maxima


@dataclass(frozen=True, slots=True)
class BnbNf4Weight:
    """NF4 (Dettmers et al. 2023, arXiv:2305.14314): `weight[o, i] = NF4_TABLE[code] * maxima[o, i // 64]`.

    packed: uint8 [out, in / 2], two codes to a byte, the first in the high half; maxima: float32 [out, in / 64].
    """

    packed: Tensor
    maxima: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return self.packed.shape[0], 2 * self.packed.shape[1]

    @property
    def label(self) -> str:
        return "bnb-nf4"

    def tensors(self) -> tuple[Tensor, ...]:
        return self.packed, self.maxima


@dataclass(frozen=True, slots=True)
class BnbNf4TiledWeight:
    """The same codes in tiles of 32 outputs: the order of bitsandbytes' product for CPUs with bfloat16.

    It rounds the table too: `weight[o, i] = bfloat16(NF4_TABLE[code]) * maxima[i // 64, o]`.
    tiles: uint8 [out / 32, in / 2, 32]. Byte j of inputs 2i and 2i + 1 holds those codes of outputs 0..15 of the tile,
    output by output, in its low half, and those of outputs 16..31 in its high half.
    maxima: bfloat16 [in / 64, out].
    """

    tiles: Tensor
    maxima: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return self.maxima.shape[1], 2 * self.tiles.shape[1]

    @property
    def label(self) -> str:
        return "bnb-nf4"

    def tensors(self) -> tuple[Tensor, ...]:
        return self.tiles, self.maxima


BnbWeight = BnbInt8Weight | BnbNf4Weight | BnbNf4TiledWeight
