"""Copies of blocks within a pool and between it and blocks whose parts lie side by side."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from quantgate_kernels.gpu.copy_blocks import copy_blocks

PAIRS = [(7, 0), (2, 5), (7, 3)]


def random_blocks(*shape: int, dtype: torch.dtype = torch.float16) -> Tensor:
    return torch.randint(-100, 100, shape, generator=torch.Generator().manual_seed(0)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int8])
@pytest.mark.parametrize("row", [(2, 64), (3, 80), (8, 128), (3,)], ids=str)
def test_forks_within_a_pool(dtype: torch.dtype, row: tuple[int, ...]) -> None:
    pool = random_blocks(4, 9, 16, *row, dtype=dtype)
    expected = pool.clone()
    for read, written in PAIRS:
        expected[:, written] = pool[:, read]
    copy_blocks(pool, pool, torch.tensor(PAIRS, dtype=torch.int32))
    assert torch.equal(pool, expected)


def test_blocks_are_gathered_and_spread_again() -> None:
    pool, staged = random_blocks(4, 9, 16, 3, 80), torch.full((3, 4, 16, 3, 80), 5.0).half()
    copy_blocks(pool, staged.transpose(0, 1), torch.tensor([(8, 1), (0, 0)], dtype=torch.int32))
    assert torch.equal(staged[1], pool[:, 8])
    assert torch.equal(staged[0], pool[:, 0])
    assert (staged[2] == 5).all()
    before = pool.clone()
    copy_blocks(staged.transpose(0, 1), pool, torch.tensor([(1, 4)], dtype=torch.int32))
    assert torch.equal(pool[:, 4], before[:, 8])
    kept = [block for block in range(9) if block != 4]
    assert torch.equal(pool[:, kept], before[:, kept])


def test_blocks_that_are_not_there_raise() -> None:
    cache = torch.zeros(1, 4, 16, 2, 64)
    with pytest.raises(Exception, match="out of bounds"):
        copy_blocks(cache, cache, torch.tensor([(4, 0)], dtype=torch.int32))
