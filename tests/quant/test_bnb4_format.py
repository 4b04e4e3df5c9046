"""bitsandbytes' 4-bit layout, by hand, against a slow reader, and back."""

from __future__ import annotations

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quant.slow_readers import read_bnb4
from tests.quant.some_codes import seeds, stored
from torch import Tensor

from quantgate_engine.quant.formats.bnb4 import TABLES, Bnb4Storage, Kind, quantize_bnb4, write_bnb4
from quantgate_engine.quant.formats.nested_absmax import dynamic_table, nest
from quantgate_engine.quant.formats.table_codes import TableCodes, nearest_codes

kinds = st.sampled_from(["nf4", "fp4"])


def read(tensors: dict[str, Tensor], shape: tuple[int, int]) -> TableCodes:
    weight = Bnb4Storage().read(stored(tensors), shape).weight
    assert isinstance(weight, TableCodes)
    return weight


def test_by_hand() -> None:
    """The first code of a byte is its high half; 15 of NF4 is 1, 7 is 0 and 0 is -1, of FP4 3 is 1 and 11 is -1."""
    for kind, data, values in (("nf4", [0xF7, 0x0F], [2, 0, -2, 2]), ("fp4", [0x30, 0xB8], [2, 0, -2, 0])):
        state = {"quant_type": kind, "blocksize": 64, "dtype": "bfloat16", "shape": [2, 2]}
        tensors = {
            "weight": torch.tensor(data, dtype=torch.uint8).unsqueeze(1),
            "weight.absmax": torch.tensor([2.0]),
            f"weight.quant_state.bitsandbytes__{kind}": torch.tensor(list(json.dumps(state).encode())).to(torch.uint8),
        }
        assert read(tensors, (2, 2)).dequantize().flatten().tolist() == values


def test_fp4_has_three_bits_of_magnitude_and_a_sign() -> None:
    magnitudes = [0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4]
    assert TABLES["fp4"] == pytest.approx([*magnitudes, *[-magnitude for magnitude in magnitudes]])


@settings(max_examples=60, deadline=None)
@given(kinds, st.integers(1, 6), st.integers(1, 70), st.sampled_from([8, 64]), seeds)
def test_reads_what_the_slow_reader_reads_and_comes_back_exactly(
    kind: Kind, outputs: int, inputs: int, block_size: int, seed: int
) -> None:
    weight = quantize_bnb4(some_weight(outputs, inputs, seed), kind, block_size)
    tensors = write_bnb4(weight, kind)
    found = read(tensors, (outputs, inputs))
    assert torch.equal(found.codes, weight.codes)
    assert torch.equal(found.absmax, weight.absmax)
    assert found.block_size == block_size
    expected = torch.tensor(read_bnb4(tensors, (outputs, inputs), block_size))
    assert torch.equal(found.dequantize().flatten(), expected)


@settings(max_examples=60, deadline=None)
@given(kinds, seeds)
def test_each_value_takes_the_nearest_entry_of_its_blocks_table(kind: Kind, seed: int) -> None:
    weight = some_weight(3, 50, seed)
    found = quantize_bnb4(weight, kind).dequantize()
    for start in range(0, 150, 64):
        block = weight.flatten()[start : start + 64]
        table = torch.tensor(TABLES[kind]) * block.abs().max()
        distances = (block.unsqueeze(1) - table).abs()
        error = (found.flatten()[start : start + 64] - block).abs()
        assert torch.allclose(error, distances.amin(dim=1), atol=1e-6)


def test_a_block_of_zeros_stays_zero() -> None:
    weight = quantize_bnb4(torch.zeros(2, 64), "nf4")
    assert not weight.dequantize().any()


@settings(max_examples=25, deadline=None)
@given(kinds, st.integers(1, 40), seeds)
def test_nested_maxima_are_codes_of_a_table_around_their_mean(kind: Kind, rows: int, seed: int) -> None:
    weight = quantize_bnb4(some_weight(rows, 1024, seed), kind)
    tensors = write_bnb4(weight, kind, nested=True)
    assert tensors["weight.absmax"].dtype == torch.uint8
    assert tensors["weight.nested_absmax"].shape == (-(-rows * 16 // 256),)
    state = json.loads(bytes(tensors[f"weight.quant_state.bitsandbytes__{kind}"].tolist()))
    table, scales = tensors["weight.nested_quant_map"], tensors["weight.nested_absmax"]
    expected = [
        float(table[code] * scales[block // 256] + state["nested_offset"])
        for block, code in enumerate(tensors["weight.absmax"].tolist())
    ]
    found = read(tensors, (rows, 1024))
    assert torch.allclose(found.absmax, torch.tensor(expected))
    assert torch.allclose(found.absmax, weight.absmax, rtol=0.03)


def test_nested_maxima_that_are_all_the_same_come_back() -> None:
    nested = nest(torch.full((3,), 0.25))
    assert nested.table[nested.codes.int()].tolist() == [0] * 3
    assert nested.dequantize().tolist() == [0.25] * 3


def test_the_table_of_nested_maxima() -> None:
    table = dynamic_table()
    assert table.shape == (256,)
    assert torch.equal(table, table.sort().values)
    assert table[-1] == 1
    assert (table == 0).sum() == 1
    # The least decade is one part, 0.55 millionths; the greatest is cut into 64, of which the last ends at 1.
    assert table[table > 0][0].item() == pytest.approx(0.55e-6)
    assert table[-2].item() == pytest.approx(1 - 0.9 / 64 / 2)
    assert table[0].item() == pytest.approx(-(1 - 0.9 / 64 / 2))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_bytes_stored_as_another_type_are_read_as_bytes(dtype: torch.dtype) -> None:
    weight = quantize_bnb4(some_weight(4, 64), "nf4")
    tensors = write_bnb4(weight, "nf4")
    tensors["weight"] = tensors["weight"].flatten().view(dtype).unsqueeze(1)
    assert torch.equal(read(tensors, (4, 64)).codes, weight.codes)


def test_an_odd_number_of_values_leaves_half_a_byte() -> None:
    weight = quantize_bnb4(some_weight(3, 5), "nf4")
    tensors = write_bnb4(weight, "nf4")
    assert tensors["weight"].shape == (8, 1)
    assert torch.equal(read(tensors, (3, 5)).codes, weight.codes)


def test_a_table_rounded_to_four_digits_is_the_same_table() -> None:
    weight = quantize_bnb4(some_weight(2, 64), "fp4")
    tensors = write_bnb4(weight, "fp4")
    tensors["weight.quant_map"] = (tensors["weight.quant_map"] * 1e4).round() / 1e4
    assert torch.equal(read(tensors, (2, 64)).dequantize(), weight.dequantize())


def test_every_tensor_that_is_written_is_asked_for() -> None:
    weight = quantize_bnb4(some_weight(2, 64), "nf4")
    written = {name for nested in (False, True) for name in write_bnb4(weight, "nf4", nested=nested)}
    assert written | {"weight.quant_state.bitsandbytes__fp4"} == set(Bnb4Storage().tensor_names)


def test_of_two_entries_as_near_the_lesser_is_taken() -> None:
    table = torch.tensor([1.0, -1.0, 0.0])
    assert nearest_codes(torch.tensor([-2.0, -0.5, -0.4, 0.5, 0.6]), table).tolist() == [1, 1, 2, 2, 0]


def some_weight(outputs: int, inputs: int, seed: int = 0) -> Tensor:
    return torch.randn(outputs, inputs, generator=torch.Generator().manual_seed(seed))
