"""AWQ's GEMM layout, by hand, against a slow reader, and back."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.quant.slow_readers import read_awq
from tests.quant.some_codes import assert_same, seeds, some_codes, stored

from quantgate_engine.errors import ModelError
from quantgate_engine.quant.formats.awq import AwqStorage, write_awq
from quantgate_engine.quant.grouped_codes import GroupedCodes


def test_by_hand() -> None:
    """One input; the codes of the outputs 0 to 7 are 0 to 7, and so are their zeros but the last, which is 5."""
    tensors = {
        "qweight": torch.tensor([[0x75316420]], dtype=torch.int32),
        "qzeros": torch.tensor([[0x55316420]], dtype=torch.int32),
        "scales": torch.full((1, 8), 0.5, dtype=torch.float16),
    }
    weight = AwqStorage(1).read(stored(tensors), (8, 1)).weight
    assert isinstance(weight, GroupedCodes)
    assert weight.codes.flatten().tolist() == list(range(8))
    assert weight.zeros.flatten().tolist() == [0, 1, 2, 3, 4, 5, 6, 5]
    assert weight.dequantize().flatten().tolist() == [0.0] * 7 + [1.0]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.integers(1, 5), st.sampled_from([1, 8, 16]), st.booleans(), seeds)
def test_reads_what_the_slow_reader_reads_and_comes_back_exactly(
    eights: int, groups: int, group_size: int, symmetric: bool, seed: int
) -> None:
    shape = (8 * eights, groups * group_size)
    weight = some_codes(*shape, 4, group_size, symmetric=symmetric, seed=seed)
    tensors = write_awq(weight)
    read = AwqStorage(group_size).read(stored(tensors), shape).weight
    assert isinstance(read, GroupedCodes)
    assert_same(read, weight)
    assert read.dequantize().tolist() == read_awq(tensors, group_size)


def test_one_group_of_all_inputs() -> None:
    weight = some_codes(16, 24, 4)
    read = AwqStorage(-1).read(stored(write_awq(weight)), (16, 24)).weight
    assert isinstance(read, GroupedCodes)
    assert_same(read, weight)


def test_the_tensors_have_the_shapes_and_types_that_other_readers_expect() -> None:
    tensors = write_awq(some_codes(64, 96, 4, 32))
    assert {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in tensors.items()} == {
        "qweight": ((96, 8), torch.int32),
        "qzeros": ((3, 8), torch.int32),
        "scales": ((3, 64), torch.float16),
    }
    assert set(tensors) == set(AwqStorage(32).tensor_names)


@pytest.mark.parametrize(
    ("weight", "what"),
    [
        (some_codes(8, 16, 8, 8), "8 bits and 8 outputs:"),
        (some_codes(12, 16, 4, 8), "4 bits and 12 outputs:"),
        (some_codes(8, 16, 4, 8, shuffled=True), "8 outputs, and groups out of order:"),
    ],
)
def test_what_the_layout_cannot_hold_is_not_written(weight: GroupedCodes, what: str) -> None:
    with pytest.raises(ModelError, match=what):
        write_awq(weight)


def test_outputs_that_are_no_multiple_of_eight_are_refused() -> None:
    with pytest.raises(ModelError, match="of 12 outputs and 8 inputs cannot be"):
        AwqStorage(8).read(stored({}), (12, 8))
