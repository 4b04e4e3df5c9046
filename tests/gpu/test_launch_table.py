"""The table of launch parameters and the division of contexts; neither needs Triton."""

from __future__ import annotations

import subprocess
import sys

import pytest

from quantgate_kernels.gpu import split_sizes
from quantgate_kernels.gpu.launch_table import (
    ARCHITECTURES,
    LARGEST_GROUP,
    decode_launch,
    padded,
    prefill_launch,
    rotate_launch,
    table_of,
)


@pytest.mark.parametrize("module", ["launch_table", "split_sizes"])
def test_it_is_read_without_torch_and_triton(module: str) -> None:
    code = f"import sys, quantgate_kernels.gpu.{module}; sys.exit(bool({{'torch', 'triton'}} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("architecture", "table"),
    [
        ("sm80", "sm80"), ("sm86", "sm80"), ("sm89", "sm80"), ("sm90", "sm90"), ("sm100", "sm100"), ("sm103", "sm100"),
        ("sm120", "sm80"), ("gfx942", "gfx942"), ("gfx90a", "gfx942"),
    ],
)  # fmt: skip
def test_every_architecture_has_a_table(architecture: str, table: str) -> None:
    assert table_of(architecture) == table


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("stored_bytes", [1, 2, 4])
@pytest.mark.parametrize("head_dim", [16, 64, 80, 96, 128])
def test_decodes_have_parameters_whose_tile_divides_every_split(
    architecture: str, stored_bytes: int, head_dim: int
) -> None:
    tile = decode_launch(architecture, stored_bytes, head_dim).tile
    assert split_sizes.SMALLEST_SPLIT % tile == 0
    assert split_sizes.FIXED_SPLIT % tile == 0


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("stored_bytes", [1, 2, 4])
@pytest.mark.parametrize("head_dim", [16, 64, 80, 96, 128])
def test_prefills_have_parameters_with_rows_for_large_groups(
    architecture: str, stored_bytes: int, head_dim: int
) -> None:
    assert prefill_launch(architecture, stored_bytes, head_dim).rows >= LARGEST_GROUP


def test_a_head_that_is_too_wide_is_refused() -> None:
    with pytest.raises(ValueError, match="head_dim 256"):
        decode_launch("sm90", 2, 256)


def test_padding_is_to_powers_of_two() -> None:
    assert [padded(size) for size in (1, 2, 3, 64, 80, 128)] == [1, 2, 4, 64, 128, 128]


def test_few_rows_get_programs_of_their_own() -> None:
    assert rotate_launch(32).tile == 1
    assert rotate_launch(4096).tile > 1
    assert rotate_launch(32, fixed=True) == rotate_launch(4096, fixed=True)


def test_splits_give_every_processor_work_and_no_more() -> None:
    alone = split_sizes.split_size(sequences=1, kv_heads=8, longest=8192, processors=132, num_warps=4)
    assert 8 * -(-8192 // alone) >= 132
    crowd = split_sizes.split_size(sequences=64, kv_heads=8, longest=8192, processors=132, num_warps=4)
    assert crowd >= 8192
    small = split_sizes.split_size(sequences=1, kv_heads=8, longest=65536, processors=132, num_warps=1)
    large = split_sizes.split_size(sequences=1, kv_heads=8, longest=65536, processors=132, num_warps=4)
    assert large == 4 * small
    assert split_sizes.split_size(1, 8, 100, 132, 4) == split_sizes.SMALLEST_SPLIT


@pytest.mark.parametrize(
    ("longest", "window", "count"),
    [(1, None, 1), (128, None, 1), (129, None, 2), (1000, None, 8), (1000, 128, 2), (100, 128, 1), (1000, 1, 1)],
)
def test_a_window_bounds_the_splits(longest: int, window: int | None, count: int) -> None:
    assert split_sizes.split_count(longest, 128, window, 64) == count
