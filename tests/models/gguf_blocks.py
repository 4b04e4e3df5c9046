"""Blocks of ggml's types, drawn at random, and what they stand for: by loops over llama.cpp's layouts (ggml-quants.c).

Every reader here takes the bytes of one block and returns its values; nothing of the gguf package is used.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Read = Callable[[bytes], list[float]]


class BlockType(NamedTuple):
    """count: values of a block; size: bytes of it; scales: where in it float16 scales begin."""

    count: int
    size: int
    scales: tuple[int, ...]
    read: Read


def _half(block: bytes, place: int) -> float:
    return float(struct.unpack_from("<e", block, place)[0])


def _q8_0(block: bytes) -> list[float]:
    return [_half(block, 0) * code for code in struct.unpack_from("<32b", block, 2)]


def _nibbles(block: bytes, place: int, count: int) -> list[int]:
    """Low halves of all bytes first, then the high ones."""
    packed = block[place : place + count // 2]
    return [byte & 15 for byte in packed] + [byte >> 4 for byte in packed]


def _q4_0(block: bytes) -> list[float]:
    return [_half(block, 0) * (code - 8) for code in _nibbles(block, 2, 32)]


def _q4_1(block: bytes) -> list[float]:
    return [_half(block, 0) * code + _half(block, 2) for code in _nibbles(block, 4, 32)]


def _q4_k(block: bytes) -> list[float]:
    """Eight groups of 32 with scales and minima of 6 bits, packed in 12 bytes; 16 * 8 bytes of nibbles."""
    packed, values = block[4:16], []
    for group in range(8):
        if group < 4:
            scale, minimum = packed[group] & 63, packed[group + 4] & 63
        else:
            scale = (packed[group + 4] & 15) | (packed[group - 4] >> 6) << 4
            minimum = (packed[group + 4] >> 4) | (packed[group] >> 6) << 4
        codes = _nibbles(block, 16 + 32 * (group // 2), 64)[32 * (group % 2) :][:32]
        values += [_half(block, 0) * scale * code - _half(block, 2) * minimum for code in codes]
    return values


def _q6_k(block: bytes) -> list[float]:
    """Two halves of 128: 64 bytes of low nibbles and 32 of two high bits each; int8 scales of 16 values each."""
    scales, values = struct.unpack_from("<16b", block, 192), [0.0] * 256
    for half in range(2):
        for place in range(32):
            low = [block[64 * half + place], block[64 * half + place + 32]]
            high = block[128 + 32 * half + place]
            for quarter in range(4):
                nibble = low[quarter % 2] >> (4 * (quarter // 2)) & 15
                code = (nibble | (high >> (2 * quarter) & 3) << 4) - 32
                at = 128 * half + 32 * quarter + place
                values[at] = _half(block, 208) * scales[at // 16] * code
    return values


def _bf16(block: bytes) -> list[float]:
    return [float(struct.unpack("<f", b"\0\0" + block)[0])]


BLOCK_TYPES: dict[str, BlockType] = {
    "F16": BlockType(1, 2, (0,), lambda block: [_half(block, 0)]),
    "BF16": BlockType(1, 2, (), _bf16),
    "Q8_0": BlockType(32, 34, (0,), _q8_0),
    "Q4_0": BlockType(32, 18, (0,), _q4_0),
    "Q4_1": BlockType(32, 20, (0, 2), _q4_1),
    "Q4_K": BlockType(256, 144, (0, 2), _q4_k),
    "Q6_K": BlockType(256, 210, (208,), _q6_k),
}


def random_blocks(kind: str, shape: tuple[int, int], random: np.random.Generator) -> NDArray[np.uint8]:
    """[rows, bytes of a row]: codes of every kind, and scales that keep values far below the largest of float16."""
    block_type = BLOCK_TYPES[kind]
    rows, columns = shape
    blocks = rows * columns // block_type.count
    drawn = random.integers(0, 256, (blocks, block_type.size), dtype=np.uint8)
    for place in block_type.scales:
        scales = random.uniform(-0.02, 0.02, blocks).astype("<f2")
        drawn[:, place : place + 2] = scales.view(np.uint8).reshape(-1, 2)
    if kind == "BF16":
        floats = random.uniform(-2, 2, blocks).astype("<f4")
        drawn[:] = floats.view(np.uint8).reshape(-1, 4)[:, 2:]
    return drawn.reshape(rows, -1)


def values_by_hand(kind: str, rows: NDArray[np.uint8]) -> NDArray[np.float64]:
    block_type = BLOCK_TYPES[kind]
    blocks = rows.reshape(-1, block_type.size)
    values = [value for block in blocks for value in block_type.read(block.tobytes())]
    return np.array(values).reshape(rows.shape[0], -1)
