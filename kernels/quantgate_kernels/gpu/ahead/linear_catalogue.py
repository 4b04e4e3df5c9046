"""The products and what belongs to them in every configuration of their launch table, as in `catalogue.py`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class WordForm:
    """A form of `WordWeight`. group: None for whole rows. scales: their dtype. None: that of the activations."""

    bits: int
    group: int | None
    zeros: bool = False
    scales: torch.dtype | None = None

    def __str__(self) -> str:
        groups = "" if self.group is None else f" in groups of {self.group}"
        zeros = ", zeros" if self.zeros else ""
        scales = f", {dtype_name(self.scales)} scales" if self.scales else ""
        return f"codes of {self.bits} bits{groups}{zeros}{scales}"


WORDS: tuple[tuple[int, torch.dtype, WordForm, int], ...] = (
    (FEW, torch.float16, WordForm(4, 32), INPUTS),
    (FEW, torch.float16, WordForm(4, 32), RAGGED),
    (FEW, torch.float16, WordForm(4, 128), INPUTS),
    (FEW, torch.float16, WordForm(8, None), INPUTS),
    (FEW, torch.float16, WordForm(8, None), RAGGED),
    (FEW, torch.bfloat16, WordForm(4, 128), INPUTS),
    (FEW, torch.bfloat16, WordForm(8, None), INPUTS),
    (MANY, torch.float16, WordForm(4, 32), INPUTS),
    (MANY, torch.float16, WordForm(4, 128), INPUTS),
    (MANY, torch.float16, WordForm(8, None), INPUTS),
    (MANY, torch.bfloat16, WordForm(4, 128), INPUTS),
    (MANY, torch.bfloat16, WordForm(8, None), INPUTS),
    # With zeros, of which the smallest groups have most.
    (FEW, torch.float16, WordForm(4, 32, zeros=True), RAGGED),
    (FEW, torch.float16, WordForm(4, 128, zeros=True), INPUTS),
    (FEW, torch.float16, WordForm(4, None, zeros=True), INPUTS),
    (MANY, torch.float16, WordForm(4, 32, zeros=True), INPUTS),
    (MANY, torch.bfloat16, WordForm(4, 128, zeros=True), INPUTS),
    # Groups of 8 bits, whose codes bfloat16 gets from float32.
    (FEW, torch.float16, WordForm(8, 128), INPUTS),
    (FEW, torch.bfloat16, WordForm(8, 32, zeros=True), INPUTS),
    (MANY, torch.float16, WordForm(8, 32, zeros=True), INPUTS),
    (MANY, torch.bfloat16, WordForm(8, 32, zeros=True), INPUTS),
    # Scales of another dtype, which meet the codes in float32.
    (FEW, torch.float16, WordForm(4, 32, zeros=True, scales=torch.bfloat16), INPUTS),
    (MANY, torch.bfloat16, WordForm(4, 32, zeros=True, scales=torch.float16), INPUTS),
    (MANY, torch.bfloat16, WordForm(8, 32, zeros=True, scales=torch.float16), INPUTS),
)
"""Rows, dtype of the activations, form of the weight, inputs."""

DEQUANTIZED = (
    WordForm(4, 32),
    WordForm(4, 128),
    WordForm(8, None),
    WordForm(4, 32, zeros=True),
    WordForm(8, 32, zeros=True, scales=torch.bfloat16),
)
CODES = ((FEW, INPUTS), (FEW, RAGGED), (MANY, INPUTS))


def linear_cases() -> Iterator[Case]:
    for rows, dtype, form, inputs in WORDS:
        name = f"{rows} rows, {dtype_name(dtype)}, {inputs} inputs, {form}"
        yield Case(name, partial(_words, rows, inputs, form, dtype))
    for rows, inputs in CODES:
        yield Case(f"{rows} rows as codes, {inputs} inputs", partial(_int8, rows, inputs))
    for inputs in WIDE_TOKENS:
        yield Case(f"quantize tokens, {inputs} inputs", partial(_quantize, inputs))
    for form in DEQUANTIZED:
        yield Case(f"dequantize, {form}", partial(_dequantize, form))


def meta_words(outputs: int, inputs: int, form: WordForm, dtype: torch.dtype) -> WordWeight:
    """dtype: of the activations."""
    words = meta(outputs, inputs * form.bits // WORD_BITS, dtype=torch.int32)
    groups = (outputs,) if form.group is None else (inputs // form.group, outputs)
    scales = meta(*groups, dtype=form.scales or dtype)
    zeros = meta(*groups, dtype=torch.uint8) if form.zeros else None
    return WordWeight(words, scales, inputs, form.group, form.bits, zeros)


def _words(rows: int, inputs: int, form: WordForm, dtype: torch.dtype, architecture: str) -> None:
    linear_words(meta(rows, inputs, dtype=dtype), meta_words(OUTPUTS, inputs, form, dtype), architecture, PROCESSORS)


def meta_int8(outputs: int, inputs: int) -> Int8DynamicWeight:
    return Int8DynamicWeight(meta(outputs, inputs, dtype=torch.int8), meta(outputs, dtype=torch.float32))


def _int8(rows: int, inputs: int, architecture: str) -> None:
    linear_int8(meta(rows, inputs, dtype=torch.float16), meta_int8(OUTPUTS, inputs), architecture, PROCESSORS)


def _quantize(inputs: int, _architecture: str) -> None:
    quantize_tokens(meta(4, inputs, dtype=torch.float16))


def _dequantize(form: WordForm, _architecture: str) -> None:
    dequantize(meta_words(OUTPUTS, INPUTS, form, torch.float16), torch.float16)
