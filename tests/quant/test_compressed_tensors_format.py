"""compressed-tensors' integer layouts, by hand, against a slow reader, and back."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quant.slow_readers import read_packed
from tests.quant.some_codes import assert_same, group_sizes, input_counts, seeds, some_codes, stored

from quantgate_engine.errors import ModelError
from quantgate_engine.quant.formats.bit_packing import pack_codes
from quantgate_engine.quant.formats.compressed_tensors import IntStorage, PackedStorage, write_int, write_packed
from quantgate_engine.quant.formats.storage import StoredWeight
from quantgate_engine.quant.grouped_codes import GroupedCodes
from quantgate_engine.quant.methods.grid import Grid
from quantgate_engine.quant.methods.rounding import round_to_nearest

all_bits = st.integers(2, 8)


def grouped(weight: StoredWeight) -> GroupedCodes:
    assert isinstance(weight, GroupedCodes)
    return weight


def test_packed_by_hand() -> None:
    """Eight values from -8 to -1, the scale 0.5; with the zero -6 of the second reading, stored as 2."""
    tensors = {
        "weight_packed": torch.tensor([[0x76543210]], dtype=torch.int32),
        "weight_scale": torch.tensor([[0.5]], dtype=torch.float16),
        "weight_shape": torch.tensor([1, 8]),
    }
    symmetric = PackedStorage(4, -1).read(stored(tensors), (1, 8)).weight
    assert symmetric.dequantize().tolist() == [[-4, -3.5, -3, -2.5, -2, -1.5, -1, -0.5]]
    tensors["weight_zero_point"] = torch.tensor([[2]], dtype=torch.int32)
    asymmetric = PackedStorage(4, -1, symmetric=False).read(stored(tensors), (1, 8)).weight
    assert asymmetric.dequantize().tolist() == [[-1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5]]


def test_bytes_by_hand() -> None:
    tensors = {
        "weight": torch.tensor([[-128, -1, 0, 127]], dtype=torch.int8),
        "weight_scale": torch.tensor([[0.5]], dtype=torch.bfloat16),
    }
    weight = IntStorage(8, -1).read(stored(tensors), (1, 4)).weight
    assert grouped(weight).codes.tolist() == [[0, 127, 128, 255]]
    assert weight.dequantize().tolist() == [[-64, -0.5, 0, 63.5]]
    tensors["weight_zero_point"] = torch.tensor([[-3]], dtype=torch.int8)
    assert IntStorage(8, -1, symmetric=False).read(stored(tensors), (1, 4)).weight.dequantize().tolist() == [
        [-62.5, 1, 1.5, 65]
    ]


@settings(max_examples=60, deadline=None)
@given(all_bits, st.integers(1, 40), input_counts, group_sizes, st.booleans(), st.booleans(), seeds)
def test_packed_reads_what_the_slow_reader_reads_and_comes_back_exactly(
    bits: int, outputs: int, inputs: int, group_size: int, symmetric: bool, shuffled: bool, seed: int
) -> None:
    weight = some_codes(outputs, inputs, bits, group_size, symmetric=symmetric, shuffled=shuffled, seed=seed)
    tensors = write_packed(weight)
    assert ("weight_zero_point" in tensors) is not weight.is_symmetric
    storage = PackedStorage(bits, group_size, symmetric=weight.is_symmetric)
    read = grouped(storage.read(stored(tensors), (outputs, inputs)).weight)
    assert_same(read, weight)
    assert read.dequantize().tolist() == read_packed(tensors, bits, weight.groups().tolist())


@settings(max_examples=60, deadline=None)
@given(all_bits, st.integers(1, 12), st.integers(1, 4), st.sampled_from([5, 8, 16]), st.booleans(), seeds)
def test_bytes_come_back_exactly(
    bits: int, outputs: int, groups: int, group_size: int, symmetric: bool, seed: int
) -> None:
    weight = some_codes(outputs, groups * group_size, bits, group_size, symmetric=symmetric, seed=seed)
    tensors = write_int(weight)
    assert ("weight_zero_point" in tensors) is not weight.is_symmetric
    storage = IntStorage(bits, group_size, symmetric=weight.is_symmetric)
    assert_same(grouped(storage.read(stored(tensors), weight.shape).weight), weight)
    half = 1 << (bits - 1)
    assert torch.equal(tensors["weight"].int(), weight.codes.int() - half)


def test_the_tensors_have_the_shapes_and_types_that_other_readers_expect() -> None:
    packed = write_packed(some_codes(64, 96, 3, 32, shuffled=True))
    assert {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in packed.items()} == {
        "weight_packed": ((64, 9), torch.int32),
        "weight_scale": ((64, 3), torch.float16),
        "weight_shape": ((2,), torch.int64),
        "weight_zero_point": ((6, 3), torch.int32),
        "weight_g_idx": ((96,), torch.int32),
    }
    assert packed["weight_shape"].tolist() == [64, 96]
    assert all(tensor.is_contiguous() for tensor in packed.values())
    assert set(packed) == set(PackedStorage(3, 32).tensor_names)
    in_bytes = write_int(some_codes(64, 96, 8, 32))
    assert {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in in_bytes.items()} == {
        "weight": ((64, 96), torch.int8),
        "weight_scale": ((64, 3), torch.float16),
        "weight_zero_point": ((64, 3), torch.int8),
    }
    assert {*in_bytes, "weight_g_idx"} == set(IntStorage(8, 32).tensor_names)


@pytest.mark.parametrize("bits", [3, 5, 6, 7])
def test_words_of_older_versions_that_split_no_code_are_read(bits: int) -> None:
    weight = some_codes(32, 64, bits, 32)
    tensors = write_packed(weight) | {
        "weight_packed": padded(weight.codes, bits),
        "weight_zero_point": padded(weight.zeros.t(), bits).t().contiguous(),
    }
    assert tensors["weight_packed"].shape[1] == -(-64 // (32 // bits))
    assert_same(grouped(PackedStorage(bits, 32, symmetric=False).read(stored(tensors), (32, 64)).weight), weight)


def test_zeros_that_older_versions_did_not_pack_are_read() -> None:
    weight = some_codes(16, 32, 4, 8)
    tensors = write_packed(weight) | {"weight_zero_point": (weight.zeros.int() - 8).to(torch.int8)}
    assert_same(grouped(PackedStorage(4, 8, symmetric=False).read(stored(tensors), (16, 32)).weight), weight)


def test_bytes_may_have_a_list_of_groups() -> None:
    weight = some_codes(16, 32, 8, 8, shuffled=True)
    tensors = write_int(replace(weight, group_of_input=None)) | {"weight_g_idx": weight.groups()}
    storage = IntStorage(8, 8, symmetric=False, lists_groups=True)
    assert_same(grouped(storage.read(stored(tensors), (16, 32)).weight), weight)


def padded(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """[a, n] -> int32 [a, ceil(n / (32 // bits))], value by value."""
    per_word = 32 // bits
    words = torch.zeros(codes.shape[0], -(-codes.shape[1] // per_word), dtype=torch.int64)
    for index in range(codes.shape[1]):
        words[:, index // per_word] |= codes[:, index].long() << (bits * (index % per_word))
    return words.to(torch.int32)


def test_one_scale_stands_for_all_outputs() -> None:
    """The strategy `tensor`."""
    tensors = {
        "weight": torch.tensor([[1, 2], [3, 4]], dtype=torch.int8),
        "weight_scale": torch.tensor([0.5]),
        "weight_zero_point": torch.tensor([1], dtype=torch.int8),
    }
    storage = IntStorage(8, -1, symmetric=False, one_scale=True)
    weight = grouped(storage.read(stored(tensors), (2, 2)).weight)
    assert weight.scales.shape == weight.zeros.shape == (2, 1)
    assert weight.dequantize().tolist() == [[0, 0.5], [1, 1.5]]
    del tensors["weight_zero_point"]
    symmetric = replace(storage, symmetric=True).read(stored(tensors), (2, 2)).weight
    assert symmetric.dequantize().tolist() == [[0.5, 1], [1.5, 2]]


@pytest.mark.parametrize("bits", [3, 4])
def test_zeros_of_a_symmetric_grid_may_be_written_and_are_the_middle(bits: int) -> None:
    weight = round_to_nearest(torch.randn(8, 32, generator=torch.Generator().manual_seed(0)), Grid(bits, 8))
    storage = PackedStorage(bits, 8)
    middle = pack_codes(weight.zeros, bits, dim=0)
    for zeros in (middle, torch.zeros_like(middle), torch.zeros(8, 4, dtype=torch.int8)):
        tensors = write_packed(weight) | {"weight_zero_point": zeros}
        assert_same(grouped(storage.read(stored(tensors), (8, 32)).weight), weight)
    for zeros in (middle + 1, torch.ones(8, 4, dtype=torch.int8)):
        tensors = write_packed(weight) | {"weight_zero_point": zeros}
        with pytest.raises(ModelError, match=r"weight_zero_point holds zeros that differ, though .* symmetric: true"):
            storage.read(stored(tensors), (8, 32))


def test_a_list_of_groups_that_was_never_filled_leaves_them_in_order() -> None:
    weight = some_codes(8, 32, 4, 8)
    tensors = write_packed(weight) | {"weight_g_idx": torch.full((32,), -1, dtype=torch.int32)}
    assert_same(grouped(PackedStorage(4, 8, symmetric=False).read(stored(tensors), (8, 32)).weight), weight)


def test_groups_out_of_order_are_not_written_in_bytes() -> None:
    with pytest.raises(ModelError, match="write it as pack-quantized"):
        write_int(some_codes(8, 16, 8, 8, shuffled=True))
