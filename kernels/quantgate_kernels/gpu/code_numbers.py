"""Inside kernels: words of codes (`code_words.py`) as the numbers they stand for, without a conversion of integers."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def weight_tile(
    words: tl.tensor,
    scales: tl.tensor,
    outputs: tl.tensor,
    start: tl.tensor,
    OUTPUTS: tl.constexpr,
    INPUTS: tl.constexpr,
    ROW_WORDS: tl.constexpr,
    BITS: tl.constexpr,
    GROUP: tl.constexpr,
    OUTPUT_TILE: tl.constexpr,
    TILE: tl.constexpr,
    DTYPE: tl.constexpr,
) -> tl.tensor:
    """A tile of a `WordWeight` in DTYPE, of these outputs and the TILE inputs from `start` on, a multiple of TILE.

    Numbers of groups (GROUP > 0) are scaled and rounded once; where a channel has one scale, they still want it.
    """
    CODES: tl.constexpr = 32 // BITS
    EVEN: tl.constexpr = INPUTS % TILE == 0
    TILE_GROUPS: tl.constexpr = TILE // GROUP if GROUP > 0 and GROUP < TILE else 1
    output_there = outputs < OUTPUTS
    places = start // CODES + tl.arange(0, TILE // CODES)
    there = output_there[:, None]
    if not EVEN:
        there &= (places < ROW_WORDS)[None, :]
    packed = tl.load(words + outputs.to(tl.int64)[:, None] * ROW_WORDS + places[None, :], mask=there, other=0)
    weight = numbers_of(packed, OUTPUT_TILE, TILE // CODES, BITS, DTYPE)
    if TILE_GROUPS > 1:
        groups = start // GROUP + tl.arange(0, TILE_GROUPS)
        scales_there = output_there[:, None]
        if not EVEN:
            scales_there &= (groups < INPUTS // GROUP)[None, :]
        scale = tl.load(scales + groups[None, :] * OUTPUTS + outputs[:, None], mask=scales_there, other=0.0)
        weight = (weight.reshape(OUTPUT_TILE, TILE_GROUPS, GROUP) * scale[:, :, None]).reshape(OUTPUT_TILE, TILE)
    elif GROUP > 0:
        scale = tl.load(scales + start // GROUP * OUTPUTS + outputs, mask=output_there, other=0.0)
        weight *= scale[:, None]
    return weight


@triton.jit
def numbers_of(
    words: tl.tensor, ROWS: tl.constexpr, WORDS: tl.constexpr, BITS: tl.constexpr, DTYPE: tl.constexpr
) -> tl.tensor:
    """int32 [ROWS, WORDS] -> [ROWS, WORDS * 32 / BITS] in DTYPE: code - zero, exact.

    A code in the lowest bits of a power of two is a floating number, from which that power and the zero are taken:
    1024 + code in float16, 128 + code in bfloat16, which has room for 7 bits alone, so that 8 take float32.
    """
    PAIRS: tl.constexpr = 16 // BITS
    ZERO: tl.constexpr = 1 << (BITS - 1)
    shifts = tl.arange(0, PAIRS) * BITS
    both = (words[:, :, None] >> shifts[None, None, :]) & _both(2 * ZERO - 1)
    if DTYPE == tl.float16:  # noqa: SIM300 (capitals are compile-time arguments here)
        both |= _both(0x6400)
        pairs = tl.join(_half(both, DTYPE), _half(both >> 16, DTYPE)) - tl.full([], 1024 + ZERO, DTYPE)
    elif BITS == 4:
        both |= _both(0x4300)
        pairs = tl.join(_half(both, DTYPE), _half(both >> 16, DTYPE)) - tl.full([], 128 + ZERO, DTYPE)
    else:
        wide = tl.join(both & 0xFFFF, both >> 16) | 0x4B000000
        pairs = (wide.to(tl.float32, bitcast=True) - (8388608.0 + ZERO)).to(DTYPE)
    return pairs.reshape(ROWS, WORDS * 2 * PAIRS)


@triton.jit
def _half(words: tl.tensor, DTYPE: tl.constexpr) -> tl.tensor:
    return words.to(tl.int16).to(DTYPE, bitcast=True)


@triton.constexpr_function
def _both(bits: int) -> int:
    """The 16 bits in both halves of a word."""
    return bits << 16 | bits
