"""Codes of 1 to 8 bits in int32 words, the first code in the lowest bits: what GPTQ and compressed-tensors pack with.

Codes are dense: where the bits do not divide 32, a code may begin in one word and end in the next. Words are
little-endian, so that a row of words is a row of bytes in which code k begins at bit `bits * k`, and eight codes
fill `bits` whole bytes. All work is done on such bytes, eight codes abreast.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn.functional import pad

WORD_BITS = 32
_CODES_ABREAST = 8


def words_for(count: int, bits: int) -> int:
    """Words that `count` codes of `bits` bits fill."""
    return -(-count * bits // WORD_BITS)


def pack_codes(codes: Tensor, bits: int, dim: int = -1) -> Tensor:
    """codes uint8 [a, n] in 0..2**bits - 1 -> int32 [a, words_for(n, bits)]; dim 0: [n, a] -> [words, a].

    Bits of the last word that no code fills are 0.
    """
    if dim == 0:
        return pack_codes(codes.t(), bits).t().contiguous()
    rows, count = codes.shape
    # To 32 codes, which fill whole words.
    octets = pad(codes, (0, -count % WORD_BITS)).reshape(rows, -1, _CODES_ABREAST)
    filled = torch.zeros(*octets.shape[:2], bits, dtype=torch.uint8, device=codes.device)
    for index in range(_CODES_ABREAST):
        byte, offset = divmod(bits * index, 8)
        filled[..., byte] |= octets[..., index] << offset
        if offset + bits > 8:
            filled[..., byte + 1] |= octets[..., index] >> (8 - offset)
    return filled.flatten().view(torch.int32).view(rows, -1)[:, : words_for(count, bits)].contiguous()


def unpack_codes(words: Tensor, bits: int, count: int, dim: int = -1) -> Tensor:
    """int32 [a, words_for(count, bits)] -> codes uint8 [a, count]; dim 0: [words, a] -> [count, a].

    Along dim 0 the result is a transposed view: `.t()` of it is contiguous.
    """
    if dim == 0:
        return unpack_codes(words.t(), bits, count).t()
    row_bytes = words.flatten().view(torch.uint8).view(words.shape[0], -1)
    octet_bytes = pad(row_bytes, (0, -row_bytes.shape[1] % bits)).view(words.shape[0], -1, bits)
    codes = torch.empty(*octet_bytes.shape[:2], _CODES_ABREAST, dtype=torch.uint8, device=words.device)
    for index in range(_CODES_ABREAST):
        byte, offset = divmod(bits * index, 8)
        code = octet_bytes[..., byte] >> offset
        if offset + bits > 8:
            code |= octet_bytes[..., byte + 1] << (8 - offset)
        codes[..., index] = code & ((1 << bits) - 1)
    return codes.view(words.shape[0], -1)[:, :count].contiguous()


def padded_words_for(count: int, bits: int) -> int:
    """Words of `count` codes where no code is split over two: 32 // bits codes a word, the rest of it unused."""
    return -(-count // (WORD_BITS // bits))


def unpack_padded_codes(words: Tensor, bits: int, count: int, dim: int = -1) -> Tensor:
    """Like `unpack_codes`, of words in which no code is split: int32 [a, padded_words_for(count, bits)]."""
    if dim == 0:
        return unpack_padded_codes(words.t(), bits, count).t()
    shifts = range(0, WORD_BITS - bits + 1, bits)
    codes = torch.stack([((words >> shift) & ((1 << bits) - 1)).to(torch.uint8) for shift in shifts], dim=-1)
    return codes.view(words.shape[0], -1)[:, :count].contiguous()


class Unpack(Protocol):
    def __call__(self, words: Tensor, bits: int, count: int, dim: int = -1) -> Tensor: ...


class WordCount(Protocol):
    def __call__(self, count: int, bits: int) -> int: ...


class WordLayout(NamedTuple):
    words_for: WordCount
    unpack: Unpack


DENSE = WordLayout(words_for, unpack_codes)
PADDED = WordLayout(padded_words_for, unpack_padded_codes)
