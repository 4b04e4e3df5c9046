"""Copies of blocks within a cache and between it and a smaller one."""

from __future__ import annotations

import pytest
import torch

from quantgate_kernels.gpu.copy_blocks import copy_blocks

PAIRS = [(7, 0), (2, 5), (7, 3)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int8])
@pytest.mark.parametrize("row", [(2, 64), (3, 80), (8, 128), (3,)], ids=str)
def test_forks_within_a_cache(dtype: torch.dtype, row: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    cache = torch.randint(-100, 100, (9, 16, *row), generator=generator).to(dtype)
    expected = cache.clone()
    for read, written in PAIRS:
        expected[written] = cache[read]
    copy_blocks(cache, cache, torch.tensor(PAIRS, dtype=torch.int32))
    assert torch.equal(cache, expected)


def test_between_tensors_of_other_numbers_of_blocks() -> None:
    cache = torch.randn(9, 16, 2, 64, generator=torch.Generator().manual_seed(0)).half()
    staged = torch.full((2, 16, 2, 64), 5.0).half()
    copy_blocks(cache, staged, torch.tensor([(8, 1)], dtype=torch.int32))
    assert torch.equal(staged[1], cache[8])
    assert (staged[0] == 5).all()


def test_blocks_that_are_not_there_raise() -> None:
    cache = torch.zeros(4, 16, 2, 64)
    with pytest.raises(Exception, match="out of bounds"):
        copy_blocks(cache, cache, torch.tensor([(4, 0)], dtype=torch.int32))
