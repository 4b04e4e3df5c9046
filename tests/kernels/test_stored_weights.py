"""Quantized weights: what is stored stands for what its definition says, and every path multiplies by that."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from quantgate_kernels.int4_packing import ZERO_CODE, dequantize_groups, pack_groups, unpack_groups
from quantgate_kernels.reference import int4
from quantgate_kernels.reference.kernels import ReferenceKernels
from quantgate_kernels.reference.linear import ROW_PATHS, dequantize
from quantgate_kernels.types import DensePackedWeight, DenseWeight, Int8ChannelWeight, LinearWeight, stored_bytes

ROW_COUNTS = (1, 7, 8, 9, 48, 49, 130)


def random_codes(outputs: int, inputs: int, seed: int = 0) -> Tensor:
    return torch.randint(0, 16, (outputs, inputs), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


def random_normal(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def int4_weight(outputs: int, inputs: int, group_size: int, dtype: torch.dtype) -> int4.Int4GroupWeight:
    scales = random_normal(outputs, inputs // group_size).abs().to(dtype)
    return pack_groups(random_codes(outputs, inputs), scales, group_size)


def int8_weight(outputs: int, inputs: int, dtype: torch.dtype) -> Int8ChannelWeight:
    codes = torch.randint(-127, 128, (outputs, inputs), generator=torch.Generator().manual_seed(2))
    return Int8ChannelWeight(codes.to(torch.int8), random_normal(outputs).abs().to(dtype))


@settings(max_examples=60, deadline=None)
@given(
    outputs=st.integers(1, 5),
    groups=st.integers(1, 4),
    group_size=st.sampled_from([2, 8, 32, 64, 128]),
    seed=st.integers(0, 2**31),
)
def test_codes_survive_packing(outputs: int, groups: int, group_size: int, seed: int) -> None:
    codes = random_codes(outputs, groups * group_size, seed)
    weight = pack_groups(codes, torch.ones(outputs, groups), group_size)
    assert weight.packed.shape == (outputs, groups, group_size // 2)
    assert torch.equal(unpack_groups(weight), codes)


def test_packed_bytes_follow_the_documented_layout() -> None:
    codes = torch.tensor([[1, 2, 3, 4, 5, 6, 7, 8]], dtype=torch.uint8)
    weight = pack_groups(codes, torch.ones(1, 2), group_size=4)
    assert weight.packed.tolist() == [[[0x31, 0x42], [0x75, 0x86]]]


def test_int4_dequantization_by_hand() -> None:
    codes = torch.tensor([[0, 8, 15, 9]], dtype=torch.uint8)
    weight = pack_groups(codes, torch.tensor([[0.5, 2.0]]), group_size=2)
    assert dequantize_groups(weight, torch.float32).tolist() == [[-4.0, 0.0, 14.0, 2.0]]
    assert torch.equal(dequantize(weight), dequantize_groups(weight, torch.float32))


def test_int8_dequantization_by_hand() -> None:
    weight = Int8ChannelWeight(torch.tensor([[-127, 3], [1, 0]], dtype=torch.int8), torch.tensor([0.5, 4.0]))
    assert dequantize(weight).tolist() == [[-63.5, 1.5], [4.0, 0.0]]


@pytest.mark.parametrize("group_size", [32, 64, 128])
def test_tiles_hold_the_same_codes_and_scales(group_size: int) -> None:
    weight = int4_weight(192, 256, group_size, torch.bfloat16)
    if not int4.has_tiled_product(weight):
        pytest.skip("this CPU's INT4 product has another layout; weights stay in groups here")
    tiled = int4.tile(weight)
    assert tiled.shape == weight.shape
    assert torch.equal(dequantize(tiled), dequantize(weight))
    by_tile = int4.dequantize_tiles(tiled, torch.float32)
    assert torch.equal(by_tile.transpose(1, 2).reshape(weight.shape), dequantize(weight))


@pytest.mark.parametrize("inputs", [1, 8, 24, 75])
def test_int8_rows_that_torchs_vectors_do_not_divide_are_multiplied_too(inputs: int) -> None:
    """Its fused product is wrong for them, or ends the process. Both roundings are 2^-8 at most."""
    weight = int8_weight(40, inputs, torch.bfloat16)
    x = random_normal(3, inputs, seed=5).bfloat16()
    exact = x.double() @ dequantize(weight).double().t()
    magnitude = x.double().abs() @ dequantize(weight).double().abs().t()
    product = ReferenceKernels().linear(x, weight)
    assert ((product.double() - exact).abs() <= (2.0**-7 + 2.0**-16) * magnitude).all()


@pytest.mark.parametrize("outputs", [63, 96])
def test_outputs_that_fill_no_tile_stay_in_groups(outputs: int) -> None:
    weight = int4_weight(outputs, 64, 32, torch.bfloat16)
    assert ReferenceKernels().stored_form(weight, torch.bfloat16) is weight


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", ROW_COUNTS)
@pytest.mark.parametrize("form", ["dense", "int8", "int4-g32", "int4-g64", "int4-g128"])
def test_every_path_multiplies_by_the_dequantized_weight(form: str, rows: int, dtype: torch.dtype) -> None:
    """Against a float64 product. In bfloat16 a dequantized weight and a result are off by 2^-9 of their size each."""
    outputs, inputs = 192, 256
    weight: LinearWeight
    if form == "dense":
        weight = DenseWeight(random_normal(outputs, inputs).to(dtype))
    elif form == "int8":
        weight = int8_weight(outputs, inputs, dtype)
    else:
        weight = int4_weight(outputs, inputs, int(form.removeprefix("int4-g")), dtype)
    kernels = ReferenceKernels()
    stored = kernels.stored_form(weight, dtype)
    x = random_normal(rows, inputs, seed=5).to(dtype)
    product = kernels.linear(x, stored)
    exact = x.double() @ dequantize(weight).double().t()
    magnitude = x.double().abs() @ dequantize(weight).double().abs().t()
    tolerance = 2.0**-8 if dtype == torch.bfloat16 else 2.0**-18
    assert product.dtype == dtype
    assert ((product.double() - exact).abs() <= tolerance * magnitude).all()


def test_a_packed_weight_keeps_its_bits_its_size_and_its_products() -> None:
    weight = DenseWeight(random_normal(192, 128).bfloat16())
    packed = ReferenceKernels().stored_form(weight, torch.bfloat16)
    if not isinstance(packed, DensePackedWeight):
        pytest.skip("torch has no packed bfloat16 product here; weights stay plain")
    assert (packed.shape, stored_bytes(packed), packed.label) == (weight.shape, stored_bytes(weight), "bfloat16")
    assert torch.equal(dequantize(packed), dequantize(weight))


@pytest.mark.parametrize("shape", [(192, 100), (100, 192)])
def test_weights_that_packing_would_pad_stay_plain(shape: tuple[int, int]) -> None:
    weight = DenseWeight(random_normal(*shape).bfloat16())
    assert ReferenceKernels().stored_form(weight, torch.bfloat16) is weight


def test_bias_is_added() -> None:
    weight = DenseWeight(torch.eye(3))
    biased = ReferenceKernels().linear(torch.ones(2, 3), weight, torch.tensor([1.0, 2.0, 3.0]))
    assert biased.tolist() == [[2.0, 3.0, 4.0]] * 2


def test_narrow_storage_is_multiplied_in_the_wider_dtype() -> None:
    weight = random_normal(4, 8).to(torch.float16)
    x = random_normal(2, 8, seed=3)
    assert torch.equal(ReferenceKernels().linear(x, DenseWeight(weight)), x @ weight.float().t())


def test_paths_name_the_way_that_was_taken() -> None:
    kernels = ReferenceKernels()
    weight = int8_weight(64, 64, torch.bfloat16)
    kernels.linear(torch.ones(1, 64, dtype=torch.bfloat16), weight)
    assert kernels.paths == {"linear.int8.rows<=8": "aten._weight_int8pack_mm"}
    kernels.linear(torch.ones(9, 64, dtype=torch.bfloat16), weight)
    assert kernels.paths["linear.int8"] == "convert codes, torch.linear, scale"


def test_a_path_that_does_not_support_the_dtype_is_passed_over() -> None:
    kernels = ReferenceKernels()
    kernels.linear(torch.ones(1, 64), int8_weight(64, 64, torch.float32))
    assert kernels.paths == {"linear.int8": "convert codes, torch.linear, scale"}


@pytest.mark.parametrize("form", list(ROW_PATHS))
def test_the_last_path_of_each_table_takes_any_batch(form: type) -> None:
    last = ROW_PATHS[form][-1]
    assert last.takes(torch.ones(100_000, 1, dtype=torch.float64))


def test_stored_bytes_count_codes_and_scales() -> None:
    outputs, inputs, group_size = 192, 256, 64
    groups = int4_weight(outputs, inputs, group_size, torch.bfloat16)
    codes, scales = outputs * inputs // 2, outputs * inputs // group_size * 2
    assert stored_bytes(groups) == codes + scales
    assert stored_bytes(int8_weight(outputs, inputs, torch.bfloat16)) == outputs * inputs + outputs * 2
    if int4.has_tiled_product(groups):
        # Torch's layout carries a zero point beside each scale.
        assert stored_bytes(int4.tile(groups)) == codes + 2 * scales
    assert ZERO_CODE == 8
