"""Inside kernels: words of codes (`code_words.py`) as the numbers they stand for, without a conversion of integers.

A code in the lowest bits of a power of two is a floating number, from which that power and the zero are taken at once:
1024 + code in float16, 128 + code in bfloat16, which has room for 7 bits alone, so that 8 take 2**23 + code in float32.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def weight_tile(
    words: tl.tensor,
    scales: tl.tensor,
    zeros: tl.tensor,
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

    Numbers of groups (GROUP > 0) are scaled and rounded once; where an output has one scale, they still want it.
    """
    CODES: tl.constexpr = 32 // BITS
    EVEN: tl.constexpr = INPUTS % TILE == 0
    TILE_GROUPS: tl.constexpr = TILE // GROUP if GROUP > 0 and GROUP < TILE else 1
    WIDE: tl.constexpr = BITS == 8 and DTYPE == tl.bfloat16  # noqa: SIM300 (capitals are compile-time arguments here)
    NUMBER: tl.constexpr = tl.float32 if WIDE else DTYPE
    output_there = outputs < OUTPUTS
    places = start // CODES + tl.arange(0, TILE // CODES)
    there = output_there[:, None]
    if not EVEN:
        there &= (places < ROW_WORDS)[None, :]
    packed = tl.load(words + outputs.to(tl.int64)[:, None] * ROW_WORDS + places[None, :], mask=there, other=0)
    weight = based_codes(packed, OUTPUT_TILE, TILE // CODES, BITS, NUMBER)
    if TILE_GROUPS > 1:
        weight = weight.reshape(OUTPUT_TILE, TILE_GROUPS, GROUP)
    if zeros is None:
        weight -= tl.full([], _base(NUMBER) + (1 << (BITS - 1)), NUMBER)
    else:
        weight -= _based(_of_groups(zeros, outputs, start, OUTPUTS, INPUTS, GROUP, TILE_GROUPS, EVEN), NUMBER)
    if GROUP > 0:
        # A code times a scale of another dtype is exact in float32, and rounded once from there. Codes wait for it in
        # DTYPE, which holds them: in float32 they take twice the registers, some of which are then spilled for sm_100.
        PRODUCT: tl.constexpr = DTYPE if scales.dtype.element_ty == DTYPE else tl.float32
        scale = _of_groups(scales, outputs, start, OUTPUTS, INPUTS, GROUP, TILE_GROUPS, EVEN)
        weight = weight.to(DTYPE).to(PRODUCT) * scale.to(PRODUCT)
    return weight.reshape(OUTPUT_TILE, TILE).to(DTYPE)


@triton.jit
def _of_groups(
    table: tl.tensor,
    outputs: tl.tensor,
    start: tl.tensor,
    OUTPUTS: tl.constexpr,
    INPUTS: tl.constexpr,
    GROUP: tl.constexpr,
    TILE_GROUPS: tl.constexpr,
    EVEN: tl.constexpr,
) -> tl.tensor:
    """What `table` [groups, OUTPUTS] has for a tile, with a last dimension of 1 in place of a group's inputs."""
    there = outputs < OUTPUTS
    if TILE_GROUPS > 1:
        groups = start // GROUP + tl.arange(0, TILE_GROUPS)
        there = there[:, None]
        if not EVEN:
            there &= (groups < INPUTS // GROUP)[None, :]
        places = table + groups[None, :] * OUTPUTS + outputs[:, None]
    elif GROUP > 0:
        places = table + start // GROUP * OUTPUTS + outputs
    else:
        places = table + outputs
    return tl.expand_dims(tl.load(places, mask=there, other=0), -1)


@triton.jit
def based_codes(
    words: tl.tensor, ROWS: tl.constexpr, WORDS: tl.constexpr, BITS: tl.constexpr, NUMBER: tl.constexpr
) -> tl.tensor:
    """int32 [ROWS, WORDS] -> [ROWS, WORDS * 32 / BITS] in NUMBER: its power of two + code."""
    PAIRS: tl.constexpr = 16 // BITS
    shifts = tl.arange(0, PAIRS) * BITS
    both = (words[:, :, None] >> shifts[None, None, :]) & _both((1 << BITS) - 1)
    if NUMBER == tl.float32:  # noqa: SIM300 (as above)
        pairs = _based(tl.join(both & 0xFFFF, both >> 16), NUMBER)
    else:
        both |= _both(_power(NUMBER))
        pairs = tl.join(_half(both, NUMBER), _half(both >> 16, NUMBER))
    return pairs.reshape(ROWS, WORDS * 2 * PAIRS)


@triton.jit
def _based(codes: tl.tensor, NUMBER: tl.constexpr) -> tl.tensor:
    """Codes of up to 8 bits in any integers -> NUMBER: its power of two + code."""
    AS_WIDE: tl.constexpr = tl.int32 if NUMBER == tl.float32 else tl.int16  # noqa: SIM300 (as above)
    return (codes.to(AS_WIDE) | _power(NUMBER)).to(NUMBER, bitcast=True)


@triton.jit
def _half(words: tl.tensor, NUMBER: tl.constexpr) -> tl.tensor:
    return words.to(tl.int16).to(NUMBER, bitcast=True)


@triton.constexpr_function
def _base(number: tl.dtype) -> float:
    return 1024.0 if number == tl.float16 else 128.0 if number == tl.bfloat16 else 8388608.0


@triton.constexpr_function
def _power(number: tl.dtype) -> int:
    """The bits of that base."""
    return 0x6400 if number == tl.float16 else 0x4300 if number == tl.bfloat16 else 0x4B000000


@triton.constexpr_function
def _both(bits: int) -> int:
    """The 16 bits in both halves of a word."""
    return bits << 16 | bits
