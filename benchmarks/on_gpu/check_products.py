"""Products with codes of 4 and 8 bits, and what belongs to them, against float64 or to the bit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import torch
from benchmarks.on_gpu.checked import Check, Compared, same
from benchmarks.on_gpu.kernel_set import kernels_for
from benchmarks.on_gpu.place import Place
from tests.gpu.float64_linear import FLOAT32_SUMS
from tests.gpu.word_forms import random_form
from torch import Tensor

from quantgate_kernels.gpu.code_words import words_of_int4, words_of_int8
from quantgate_kernels.gpu.dequantize import dequantize
from quantgate_kernels.gpu.linear_int8 import linear_int8
from quantgate_kernels.gpu.linear_words import linear_words
from quantgate_kernels.gpu.quantize_tokens import quantize_tokens
from quantgate_kernels.int4_packing import pack_groups
from quantgate_kernels.types import Int8ChannelWeight, Int8DynamicWeight, ReorderedWeight, dtype_name
from quantgate_kernels.word_weight import WordWeight

DTYPES = (torch.float16, torch.bfloat16)
GROUPS: tuple[int | None, ...] = (32, 64, 128, None)
"""Inputs that share a scale of codes of 4 bits; None: codes of 8, one scale a channel."""

REORDERED_GROUPS: tuple[int | None, ...] = (128, None)
"""With inputs in an order of their own: the group says nothing of how rows are gathered."""

FORMS: tuple[tuple[int, int, bool, torch.dtype], ...] = (
    (4, 32, True, torch.float16),
    (4, 128, True, torch.bfloat16),
    (8, 128, False, torch.float16),
    (8, 32, True, torch.bfloat16),
)
"""Of checkpoints: bits, inputs of a group, whether it has a zero, and the dtype of its scale."""


def product_checks(rows: Sequence[int], shapes: Sequence[tuple[int, int]]) -> Iterator[Check]:
    """shapes: (outputs, inputs)."""
    for dtype in DTYPES:
        for outputs, inputs in shapes:
            yield from _form_checks(rows, outputs, inputs, dtype)
            for group in GROUPS:
                weight, meant = word_weight(outputs, inputs, group, dtype)
                name = f"{dtype_name(dtype)}, {_form(group)}, {outputs} x {inputs}"
                for count in rows:
                    x = _random_rows(count, inputs, dtype)
                    for deterministic in (False, True):
                        yield Check(
                            "W8A16" if group is None else "W4A16",
                            f"{name}, {count} rows{', deterministic' * deterministic}",
                            partial(_by_words, x, weight, deterministic),
                            partial(_compare_product, x, meant),
                        )
                run = partial(_dequantize, weight, dtype)
                yield Check("dequantize", name, run, partial(_compare_numbers, meant, dtype))
            yield from _int8_checks(rows, outputs, inputs, dtype)
            yield from _reordered_checks(rows, outputs, inputs, dtype)


def _form(group: int | None) -> str:
    return "int8 weights" if group is None else f"int4 weights in groups of {group}"


def _form_checks(rows: Sequence[int], outputs: int, inputs: int, dtype: torch.dtype) -> Iterator[Check]:
    for bits, group, zeros, scales in FORMS:
        weight = random_form(bits, outputs, inputs, group, scales, zeros=zeros)
        name = f"{dtype_name(dtype)}, {weight.words.label}, {dtype_name(scales)} scales, {outputs} x {inputs}"
        for count, deterministic in product(rows, (False, True)):
            x = _random_rows(count, inputs, dtype)
            case = f"{name}, {count} rows{', deterministic' * deterministic}"
            run = partial(_by_words, x, weight.words, deterministic)
            yield Check(f"W{bits}A16", case, run, partial(_compare_product, x, weight.multiplied(dtype)))
        run = partial(_dequantize, weight.words, dtype)
        yield Check("dequantize", name, run, partial(_compare_numbers, weight.exact, dtype))


def word_weight(outputs: int, inputs: int, group: int | None, dtype: torch.dtype) -> tuple[WordWeight, Tensor]:
    """With what its codes stand for in float64; of groups, rounded once to the dtype that is multiplied."""
    generator = torch.Generator().manual_seed(2)
    if group is None:
        codes = torch.randint(-127, 128, (outputs, inputs), generator=generator, dtype=torch.int8)
        scales = (torch.rand(outputs, generator=generator) + 0.1).to(dtype)
        return words_of_int8(Int8ChannelWeight(codes, scales)), codes.double() * scales.double()[:, None]
    codes = torch.randint(0, 16, (outputs, inputs), generator=generator, dtype=torch.uint8)
    scales = (torch.rand(outputs, inputs // group, generator=generator) + 0.1).to(dtype)
    meant = ((codes.double() - 8) * scales.double().repeat_interleave(group, 1)).to(dtype).double()
    return words_of_int4(pack_groups(codes, scales, group)), meant


def _random_rows(rows: int, inputs: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(rows, inputs, generator=torch.Generator().manual_seed(1)).to(dtype)


def _by_words(x: Tensor, weight: WordWeight, deterministic: bool, place: Place) -> list[Tensor]:
    x, weight = x.to(place.torch_device), place.put(weight)
    return [linear_words(x, weight, place.architecture, place.processors, deterministic=deterministic)]


def _compare_product(x: Tensor, meant: Tensor, results: Sequence[Tensor]) -> list[Compared]:
    """Within half a step of its dtype and the rounding of sums in float32, as the tests allow it."""
    exact, number = x.double() @ meant.t(), torch.finfo(x.dtype)
    magnitudes = x.double().abs() @ meant.abs().t()
    allowed = exact.abs() * number.eps * 0.51 + magnitudes * FLOAT32_SUMS + number.smallest_normal * number.eps
    return [Compared("product", results[0], exact, allowed)]


def _dequantize(weight: WordWeight, dtype: torch.dtype, place: Place) -> list[Tensor]:
    return [dequantize(place.put(weight), dtype)]


def _compare_numbers(meant: Tensor, dtype: torch.dtype, results: Sequence[Tensor]) -> list[Compared]:
    return [same("numbers", results[0], meant.to(dtype))]


def _int8_checks(rows: Sequence[int], outputs: int, inputs: int, dtype: torch.dtype) -> Iterator[Check]:
    weight = _code_weight(outputs, inputs)
    for count in rows:
        x = _rows_for_codes(count, inputs, dtype)
        name = f"{dtype_name(dtype)}, {outputs} x {inputs}, {count} rows"
        yield Check("W8A8", name, partial(_by_codes, x, weight), partial(_compare_codes_product, x, weight))
        yield Check("quantize tokens", name, partial(_quantize, x), partial(_compare_codes, x))


def _code_weight(outputs: int, inputs: int) -> Int8DynamicWeight:
    generator = torch.Generator().manual_seed(3)
    codes = torch.randint(-127, 128, (outputs, inputs), generator=generator, dtype=torch.int8)
    return Int8DynamicWeight(codes, torch.rand(outputs, generator=generator) * 0.1)


def _rows_for_codes(rows: int, inputs: int, dtype: torch.dtype) -> Tensor:
    return (_random_rows(rows, inputs, torch.float32) * torch.logspace(-3, 0, rows)[:, None]).to(dtype)


def _by_codes(x: Tensor, weight: Int8DynamicWeight, place: Place) -> list[Tensor]:
    return [linear_int8(x.to(place.torch_device), place.put(weight), place.architecture, place.processors)]


def _quantize(x: Tensor, place: Place) -> list[Tensor]:
    return list(quantize_tokens(x.to(place.torch_device)))


def _defined_codes(x: Tensor) -> tuple[Tensor, Tensor]:
    """As `reference/int8_rows.py` defines them, by quotients in float64: (codes int8, scales float32)."""
    scales = (x.double().abs().amax(1) / 127).float()
    quotients = (x.double() / scales.double()[:, None]).float().double()
    return quotients.round().clamp(-127, 127).nan_to_num(0.0).to(torch.int8), scales


def _compare_codes(x: Tensor, results: Sequence[Tensor]) -> list[Compared]:
    codes, scales = _defined_codes(x)
    return [same("codes", results[0], codes), same("scales", results[1], scales)]


def _compare_codes_product(x: Tensor, weight: Int8DynamicWeight, results: Sequence[Tensor]) -> list[Compared]:
    codes, row_scales = _defined_codes(x)
    # Whole numbers of up to 53 bits, so that the order of their sums says nothing.
    sums = codes.double() @ weight.codes.double().t()
    exact = (sums.float() * (row_scales[:, None] * weight.scales)).to(x.dtype)
    return [same("product", results[0], exact)]


def _reordered_checks(rows: Sequence[int], outputs: int, inputs: int, dtype: torch.dtype) -> Iterator[Check]:
    """As the kernel set multiplies by them: it gathers rows before the products that are checked by themselves."""
    order = torch.randperm(inputs, generator=torch.Generator().manual_seed(4)).to(torch.int32)
    plain = _code_weight(outputs, inputs)
    by_codes = ReorderedWeight(replace(plain, codes=plain.codes[:, order].contiguous()), order)
    for count in rows:
        name = f"{outputs} x {inputs}, {count} rows"
        x = _random_rows(count, inputs, dtype)
        for group in REORDERED_GROUPS:
            words, stored = word_weight(outputs, inputs, group, dtype)
            meant = torch.empty_like(stored).index_copy_(1, order.long(), stored)
            run = partial(_by_kernel_set, x, ReorderedWeight(words, order))
            case = f"{dtype_name(dtype)}, {_form(group)}, {name}"
            yield Check("reordered inputs", case, run, partial(_compare_product, x, meant))
        x = _rows_for_codes(count, inputs, dtype)
        run, compare = partial(_by_kernel_set, x, by_codes), partial(_compare_codes_product, x, plain)
        yield Check("reordered inputs, W8A8", f"{dtype_name(dtype)}, {name}", run, compare)


def _by_kernel_set(
    x: Tensor, weight: ReorderedWeight[WordWeight] | ReorderedWeight[Int8DynamicWeight], place: Place
) -> list[Tensor]:
    return [kernels_for(place).linear(x.to(place.torch_device), place.put(weight))]
