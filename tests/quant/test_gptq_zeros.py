"""The two conventions of GPTQ's zeros, told apart by value."""

from __future__ import annotations

import pytest
import torch
from tests.quant.some_codes import some_codes, stored

from quantgate_engine.errors import ModelError
from quantgate_engine.quant.formats.gptq import GptqStorage, write_gptq
from quantgate_engine.quant.formats.gptq_zeros import ZeroConvention, stored_from_zeros, zeros_from_stored
from quantgate_engine.quant.formats.storage import ReadLayer
from quantgate_engine.quant.grouped_codes import GroupedCodes

V1, V2 = ZeroConvention.MINUS_ONE, ZeroConvention.AS_IS
# What `qzeros` holds on a symmetric grid, by bits: words of the first convention and of the second.
SYMMETRIC_WORDS = {
    2: ([0x55555555], [0xAAAAAAAA]),
    3: ([0xDB6DB6DB, 0xB6DB6DB6, 0x6DB6DB6D], [0x24924924, 0x49249249, 0x92492492]),
    4: ([0x77777777] * 4, [0x88888888] * 4),
    8: ([0x7F7F7F7F] * 8, [0x80808080] * 8),
}


def read(
    words: list[int], bits: int, stated: ZeroConvention, symmetric: bool | None, outputs: int = 32
) -> tuple[GroupedCodes, ReadLayer]:
    signed = [word - (1 << 32) if word >> 31 else word for word in words]
    tensors = write_gptq(some_codes(outputs, 32, bits)) | {"qzeros": torch.tensor([signed], dtype=torch.int32)}
    layer = GptqStorage(bits, -1, stated, symmetric).read(stored(tensors), (outputs, 32))
    assert isinstance(layer.weight, GroupedCodes)
    return layer.weight, layer


def words_for_outputs(bits: int, convention: int) -> tuple[list[int], int]:
    """-> (the row of qzeros, the outputs that it is for)"""
    words = SYMMETRIC_WORDS[bits][convention]
    return words, len(words) * 32 // bits


@pytest.mark.parametrize("bits", SYMMETRIC_WORDS)
@pytest.mark.parametrize("symmetric", [True, None])
@pytest.mark.parametrize("stated", [V1, V2])
@pytest.mark.parametrize("held", [V1, V2])
def test_a_symmetric_grid_is_read_by_its_values(
    bits: int, symmetric: bool | None, stated: ZeroConvention, held: ZeroConvention
) -> None:
    words, outputs = words_for_outputs(bits, [V1, V2].index(held))
    weight, layer = read(words, bits, stated, symmetric, outputs)
    assert weight.is_symmetric
    if held is stated:
        assert layer.remark is None
    else:
        assert layer.remark is not None
        assert layer.remark.startswith(f"some/model: the quantization config says {stated}, but ")
        assert layer.remark.endswith(f"they are read as {held}.")


@pytest.mark.parametrize("bits", SYMMETRIC_WORDS)
@pytest.mark.parametrize("convention", [V1, V2])
def test_a_symmetric_grid_is_written_as_these_words(bits: int, convention: ZeroConvention) -> None:
    words, outputs = words_for_outputs(bits, [V1, V2].index(convention))
    tensors = write_gptq(some_codes(outputs, 32, bits, symmetric=True), convention)
    assert [word & 0xFFFFFFFF for word in tensors["qzeros"][0].tolist()] == words


def test_an_asymmetric_grid_is_read_as_the_configuration_says() -> None:
    """All zeros may be 9 there, stored as 8 by the first convention."""
    for stated, zero in ((V1, 9), (V2, 8)):
        weight, layer = read([0x88888888] * 4, 4, stated, symmetric=False)
        assert (weight.zeros == zero).all()
        assert layer.remark is None


def test_where_nothing_says_whether_the_grid_is_symmetric_unequal_zeros_say_it_is_not() -> None:
    weight, layer = read([0x77777776, *[0x77777777] * 3], 4, V1, symmetric=None)
    assert weight.zeros.flatten().tolist() == [7] + [8] * 31
    assert layer.remark is None


@pytest.mark.parametrize("words", [[0x77777778, *[0x77777777] * 3], [0x66666666] * 4, [0x99999999] * 4])
def test_a_grid_that_is_called_symmetric_and_has_other_zeros_is_refused(words: list[int]) -> None:
    with pytest.raises(ModelError, match=r"down_proj\.qzeros holds values from \d to \d, though .* sym: true, .* 7 \("):
        read(words, 4, V1, symmetric=True)


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
def test_the_zero_0_is_stored_as_the_greatest_code_by_the_first_convention(bits: int) -> None:
    """Added to a whole word instead of within its bits, the 1 would run over into the next zero."""
    zeros = torch.arange(1 << bits).to(torch.uint8)
    values = stored_from_zeros(zeros, bits, V1)
    assert values[0] == (1 << bits) - 1
    assert torch.equal(values[1:], zeros[:-1])
    assert torch.equal(zeros_from_stored(values, bits, V1), zeros)
    assert torch.equal(stored_from_zeros(zeros, bits, V2), zeros)
    weight, _ = read([0x7777777F, *[0x77777777] * 3], 4, V1, symmetric=False)
    assert weight.zeros.flatten().tolist() == [0] + [8] * 31
