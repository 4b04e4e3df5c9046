"""GPTQ's layout, by hand, against a slow reader, and back."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quant.slow_readers import read_gptq
from tests.quant.some_codes import assert_same, group_sizes, input_counts, seeds, some_codes, stored

from quantgate_engine.quant.formats.gptq import GptqStorage, write_gptq
from quantgate_engine.quant.formats.gptq_zeros import ZeroConvention
from quantgate_engine.quant.grouped_codes import GroupedCodes

ALL_BITS = (2, 3, 4, 8)
V1, V2 = ZeroConvention.MINUS_ONE, ZeroConvention.AS_IS


def test_by_hand() -> None:
    """Eight inputs, two groups of four, eight outputs; output 1 has the scale 0.5 and the zero 3 in both groups."""
    tensors = {
        "qweight": torch.tensor([[0, 0x76543210, 0, 0, 0, 0, 0, 0]], dtype=torch.int32),
        # Stored zeros of the outputs from the lowest bits up: 2 is the zero 3.
        "qzeros": torch.tensor([[0x20], [0x20]], dtype=torch.int32),
        "scales": torch.full((2, 8), 0.5, dtype=torch.float16),
        "g_idx": torch.tensor([0, 0, 0, 0, 1, 1, 1, 1], dtype=torch.int32),
    }
    weight = GptqStorage(4, 4, V1, symmetric=False).read(stored(tensors), (8, 8)).weight
    assert weight.dequantize()[1].tolist() == [-1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2]
    # The other outputs: code 0, and the zero 1 by the stored 0.
    assert weight.dequantize()[0].tolist() == [-0.5] * 8


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(ALL_BITS),
    st.integers(1, 40),
    input_counts,
    group_sizes,
    st.booleans(),
    st.sampled_from([V1, V2]),
    seeds,
)
def test_reads_what_the_slow_reader_reads(
    bits: int, outputs: int, inputs: int, group_size: int, shuffled: bool, convention: ZeroConvention, seed: int
) -> None:
    weight = some_codes(outputs, inputs, bits, group_size, shuffled=shuffled, seed=seed)
    tensors = write_gptq(weight, convention)
    expected = read_gptq(tensors, bits, stored_minus_one=convention is V1)
    assert weight.dequantize().tolist() == expected
    read = GptqStorage(bits, group_size, convention, symmetric=False).read(stored(tensors), (outputs, inputs))
    assert read.weight.dequantize().tolist() == expected


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(ALL_BITS),
    st.integers(1, 40),
    input_counts,
    group_sizes,
    st.booleans(),
    st.booleans(),
    st.sampled_from([V1, V2]),
    seeds,
)
def test_comes_back_exactly(
    bits: int,
    outputs: int,
    inputs: int,
    group_size: int,
    symmetric: bool,
    shuffled: bool,
    convention: ZeroConvention,
    seed: int,
) -> None:
    weight = some_codes(outputs, inputs, bits, group_size, symmetric=symmetric, shuffled=shuffled, seed=seed)
    storage = GptqStorage(bits, group_size, convention, symmetric=symmetric)
    read = storage.read(stored(write_gptq(weight, convention)), (outputs, inputs))
    assert isinstance(read.weight, GroupedCodes)
    assert_same(read.weight, weight)
    assert read.remark is None


def test_the_tensors_have_the_shapes_and_types_that_other_readers_expect() -> None:
    tensors = write_gptq(some_codes(64, 96, 3, 32))
    assert {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in tensors.items()} == {
        "qweight": ((9, 64), torch.int32),
        "qzeros": ((3, 6), torch.int32),
        "scales": ((3, 64), torch.float16),
        "g_idx": ((96,), torch.int32),
    }
    assert all(tensor.is_contiguous() for tensor in tensors.values())
    assert set(tensors) == set(GptqStorage(3, 32).tensor_names)


def test_without_g_idx_groups_stand_in_order_and_the_last_may_be_short() -> None:
    weight = some_codes(8, 40, 4, 16)
    tensors = write_gptq(weight)
    del tensors["g_idx"]
    read = GptqStorage(4, 16, V1, symmetric=False).read(stored(tensors), (8, 40)).weight
    assert isinstance(read, GroupedCodes)
    assert_same(read, weight)
    assert read.groups().tolist() == [0] * 16 + [1] * 16 + [2] * 8


def test_a_g_idx_of_nothing_but_0_is_a_place_that_was_not_used() -> None:
    weight = some_codes(8, 32, 4, 8)
    tensors = write_gptq(weight) | {"g_idx": torch.zeros(32, dtype=torch.int32)}
    read = GptqStorage(4, 8, V1, symmetric=False).read(stored(tensors), (8, 32)).weight
    assert isinstance(read, GroupedCodes)
    assert_same(read, weight)


def test_a_g_idx_in_order_is_not_kept_as_a_list() -> None:
    """Kernels take layers whose groups stand in order by a shorter way."""
    tensors = write_gptq(some_codes(8, 32, 4, 8))
    read = GptqStorage(4, 8, V1, symmetric=False).read(stored(tensors), (8, 32)).weight
    assert isinstance(read, GroupedCodes)
    assert read.group_of_input is None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_scales_keep_their_dtype_and_their_sign(dtype: torch.dtype) -> None:
    """Negative scales and zeros occur: a grid may be turned over, a group may be all zeros."""
    tensors = write_gptq(some_codes(8, 8, 4, 8)) | {"scales": torch.tensor([[-0.5, 0, 1, 2, 3, 4, 5, 6]], dtype=dtype)}
    read = GptqStorage(4, 8, V1, symmetric=False).read(stored(tensors), (8, 8)).weight
    assert isinstance(read, GroupedCodes)
    assert read.scales.dtype == dtype
    assert read.scales[:2, 0].tolist() == [-0.5, 0]
