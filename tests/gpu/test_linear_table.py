"""Launch parameters of products and the division of their inputs; neither needs Triton."""

from __future__ import annotations

import subprocess
import sys

import pytest

from quantgate_kernels.gpu.launch_table import ARCHITECTURES
from quantgate_kernels.gpu.linear_table import (
    FEW_ROWS,
    FIXED_SPLIT_INPUTS,
    LEAST_TILES,
    int8_launch,
    tiles_of_split,
    tokens_launch,
    words_launch,
)

GROUP_SIZES = (32, 64, 128, 256)


def test_it_is_read_without_torch_and_triton() -> None:
    code = "import sys, quantgate_kernels.gpu.linear_table; sys.exit(bool({'torch', 'triton'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("architecture", [*ARCHITECTURES, "sm89", "sm120"])
@pytest.mark.parametrize("rows", [1, FEW_ROWS, FEW_ROWS + 1, 4096])
def test_tiles_and_groups_fit_each_other_and_the_fixed_split(architecture: str, rows: int) -> None:
    launch = words_launch(architecture, rows)
    assert all(launch.inputs % group == 0 or group % launch.inputs == 0 for group in GROUP_SIZES)
    assert FIXED_SPLIT_INPUTS % launch.inputs == 0
    assert launch.outputs >= 64  # as the left factor, enough for the instructions of a warp group
    assert int8_launch(architecture, rows).inputs % 32 == 0


def test_few_rows_get_small_tiles_and_the_deterministic_mode_one_for_all() -> None:
    assert words_launch("sm90", 1).rows < words_launch("sm90", 100).rows
    fixed = {words_launch("sm90", rows, deterministic=True) for rows in (1, FEW_ROWS, 17, 4096)}
    assert len(fixed) == 1


def test_splits_give_every_processor_work_and_no_more() -> None:
    few = words_launch("sm90", 1)
    tiles = tiles_of_split(few, 1, 4096, 4096, processors=132)
    assert tiles >= LEAST_TILES
    assert 4096 // few.outputs * -(-4096 // (tiles * few.inputs)) >= 132
    many = words_launch("sm90", 2048)
    assert tiles_of_split(many, 2048, 4096, 4096, processors=132) * many.inputs >= 4096


def test_fixed_splits_know_neither_rows_nor_the_device() -> None:
    launch = words_launch("sm90", 1, deterministic=True)
    sizes = {
        tiles_of_split(launch, rows, 4096, 4096, processors, deterministic=True)
        for rows in (1, 700) for processors in (1, 132)
    }  # fmt: skip
    assert sizes == {FIXED_SPLIT_INPUTS // launch.inputs}


@pytest.mark.parametrize(("inputs", "num_warps"), [(1, 1), (576, 1), (1025, 2), (4096, 4), (8192, 8), (32_768, 16)])
def test_longer_rows_take_more_warps(inputs: int, num_warps: int) -> None:
    assert tokens_launch(inputs).num_warps == num_warps
