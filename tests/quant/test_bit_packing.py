"""Codes in words: by hand, against Python's integers, and back."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from quantgate_engine.quant.formats.bit_packing import (
    pack_codes,
    padded_words_for,
    unpack_codes,
    unpack_padded_codes,
    words_for,
)


def words_of(*codes: int, bits: int) -> list[int]:
    return [word & 0xFFFFFFFF for word in pack_codes(torch.tensor([codes], dtype=torch.uint8), bits)[0].tolist()]


def test_the_first_code_stands_in_the_lowest_bits() -> None:
    assert words_of(0, 1, 2, 3, 4, 5, 6, 7, bits=4) == [0x76543210]
    assert words_of(1, 2, 3, 255, bits=8) == [0xFF030201]
    assert words_of(*([0, 1, 2, 3] * 4), bits=2) == [0xE4E4E4E4]


def test_32_codes_of_3_bits_fill_three_words() -> None:
    assert words_of(*([0, 1, 2, 3, 4, 5, 6, 7] * 4), bits=3) == [0x88FAC688, 0xC688FAC6, 0xFAC688FA]


@pytest.mark.parametrize(
    ("place", "code", "words"),
    [
        (9, 0b101, [0b101 << 27, 0, 0]),
        (10, 0b101, [0b01 << 30, 0b1, 0]),
        (21, 0b101, [0, 0b1 << 31, 0b10]),
        (31, 0b111, [0, 0, 0b111 << 29]),
    ],
)
def test_a_code_of_3_bits_that_a_word_has_no_room_for_ends_in_the_next(place: int, code: int, words: list[int]) -> None:
    codes = [0] * 32
    codes[place] = code
    assert words_of(*codes, bits=3) == words


def test_bits_that_no_code_fills_are_zero_and_are_not_read() -> None:
    assert words_of(15, 15, 15, bits=4) == [0xFFF]
    noisy = torch.tensor([[-1]], dtype=torch.int32)
    assert unpack_codes(noisy, 4, 3).tolist() == [[15, 15, 15]]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 8), st.data())
def test_words_are_one_number_of_which_each_code_is_a_digit(bits: int, data: st.DataObject) -> None:
    codes = data.draw(st.lists(st.integers(0, (1 << bits) - 1), min_size=1, max_size=100))
    number = sum(code << (bits * index) for index, code in enumerate(codes))
    words = words_of(*codes, bits=bits)
    assert len(words) == words_for(len(codes), bits) == -(-len(codes) * bits // 32)
    assert words == [(number >> (32 * index)) & 0xFFFFFFFF for index in range(len(words))]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 8), st.integers(1, 5), st.integers(1, 100), st.integers(0, 2**32))
def test_codes_come_back_along_either_dimension(bits: int, rows: int, count: int, seed: int) -> None:
    codes = random_codes(rows, count, bits, seed)
    assert torch.equal(unpack_codes(pack_codes(codes, bits), bits, count), codes)
    columns = codes.t()
    packed = pack_codes(columns, bits, dim=0)
    assert packed.shape == (words_for(count, bits), rows)
    assert packed.is_contiguous()
    assert torch.equal(packed.t(), pack_codes(codes, bits))
    assert torch.equal(unpack_codes(packed, bits, count, dim=0), columns)


def test_a_padded_word_of_3_bits_holds_ten_codes() -> None:
    first = sum((code % 8) << (3 * code) for code in range(10))
    words = torch.tensor([[first, 5]], dtype=torch.int32)
    assert padded_words_for(11, 3) == 2
    assert unpack_padded_codes(words, 3, 11).tolist() == [[0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 5]]
    assert unpack_padded_codes(words.t(), 3, 11, dim=0).tolist() == [[code] for code in [*range(8), 0, 1, 5]]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([1, 2, 4, 8]), st.integers(1, 100), st.integers(0, 2**32))
def test_where_the_bits_divide_32_the_padded_layout_is_the_dense_one(bits: int, count: int, seed: int) -> None:
    codes = random_codes(2, count, bits, seed)
    assert padded_words_for(count, bits) == words_for(count, bits)
    assert torch.equal(unpack_padded_codes(pack_codes(codes, bits), bits, count), codes)


def random_codes(rows: int, count: int, bits: int, seed: int) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randint(0, 1 << bits, (rows, count), dtype=torch.uint8, generator=random)
