"""The products and what belongs to them in every configuration of their launch table, as in `catalogue.py`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from quantgate_kernels.gpu.ahead.catalogue import Case, meta
from quantgate_kernels.gpu.dequantize import dequantize
from quantgate_kernels.gpu.linear_int8 import linear_int8
from quantgate_kernels.gpu.linear_table import FEW_ROWS, MOST_INPUTS_IN_REGISTERS
from quantgate_kernels.gpu.linear_words import linear_words
from quantgate_kernels.gpu.quantize_tokens import quantize_tokens
from quantgate_kernels.types import Int8DynamicWeight, dtype_name
from quantgate_kernels.word_weight import WORD_BITS, WordWeight

OUTPUTS = 4096
PROCESSORS = 128
FEW, MANY = FEW_ROWS, 512
INPUTS, RAGGED = 4096, 576
"""A multiple of every tile, and none of those for few rows."""

WIDE_TOKENS = (14_336, MOST_INPUTS_IN_REGISTERS)

WORDS: tuple[tuple[int, torch.dtype, int | None, int], ...] = (
    # (rows, activations, group size or None for codes of 8 bits, inputs)
    (FEW, torch.float16, 32, INPUTS),
    (FEW, torch.float16, 32, RAGGED),
    (FEW, torch.float16, 128, INPUTS),
    (FEW, torch.float16, None, INPUTS),
    (FEW, torch.float16, None, RAGGED),
    (FEW, torch.bfloat16, 128, INPUTS),
    (FEW, torch.bfloat16, None, INPUTS),
    (MANY, torch.float16, 32, INPUTS),
    (MANY, torch.float16, 128, INPUTS),
    (MANY, torch.float16, None, INPUTS),
    (MANY, torch.bfloat16, 128, INPUTS),
    (MANY, torch.bfloat16, None, INPUTS),
)
CODES = ((FEW, INPUTS), (FEW, RAGGED), (MANY, INPUTS))


def linear_cases() -> Iterator[Case]:
    for rows, dtype, group, inputs in WORDS:
        name = f"{rows} rows, {dtype_name(dtype)}, {inputs} inputs, {_codes(group)}"
        yield Case(name, partial(_words, rows, inputs, group, dtype))
    for rows, inputs in CODES:
        yield Case(f"{rows} rows as codes, {inputs} inputs", partial(_int8, rows, inputs))
    for inputs in WIDE_TOKENS:
        yield Case(f"quantize tokens, {inputs} inputs", partial(_quantize, inputs))
    for group in (32, 128, None):
        yield Case(f"dequantize, {_codes(group)}", partial(_dequantize, group))


def _codes(group: int | None) -> str:
    return "codes of 8 bits" if group is None else f"codes of 4 bits in groups of {group}"


def meta_words(outputs: int, inputs: int, group: int | None, dtype: torch.dtype) -> WordWeight:
    bits = 8 if group is None else 4
    words = meta(outputs, inputs * bits // WORD_BITS, dtype=torch.int32)
    scales = meta(outputs, dtype=dtype) if group is None else meta(inputs // group, outputs, dtype=dtype)
    return WordWeight(words, scales, inputs, group, bits)


def _words(rows: int, inputs: int, group: int | None, dtype: torch.dtype, architecture: str) -> None:
    linear_words(meta(rows, inputs, dtype=dtype), meta_words(OUTPUTS, inputs, group, dtype), architecture, PROCESSORS)


def meta_int8(outputs: int, inputs: int) -> Int8DynamicWeight:
    return Int8DynamicWeight(meta(outputs, inputs, dtype=torch.int8), meta(outputs, dtype=torch.float32))


def _int8(rows: int, inputs: int, architecture: str) -> None:
    linear_int8(meta(rows, inputs, dtype=torch.float16), meta_int8(OUTPUTS, inputs), architecture, PROCESSORS)


def _quantize(inputs: int, _architecture: str) -> None:
    quantize_tokens(meta(4, inputs, dtype=torch.float16))


def _dequantize(group: int | None, _architecture: str) -> None:
    dequantize(meta_words(OUTPUTS, INPUTS, group, torch.float16))
