"""Memory that weights and caches lie in: theirs alone, and gone when they are."""

from __future__ import annotations

import gc
import mmap
from pathlib import Path

import psutil
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from quantgate_kernels.huge_pages import CACHE_LINE, HUGE_PAGE_BYTES, WeightMemory, prefer_huge_pages

CHUNK = 1 << 12


@given(st.lists(st.integers(0, 3 * CHUNK), max_size=20))
def test_every_copy_has_its_numbers_and_its_own_cache_lines(sizes: list[int]) -> None:
    memory = WeightMemory(CHUNK)
    originals = [torch.full((size,), index, dtype=torch.int16) for index, size in enumerate(sizes)]

    copies = [memory.copy_of(original) for original in originals]

    assert all(map(torch.equal, copies, originals))
    assert all(copy.data_ptr() % CACHE_LINE == 0 for copy in copies if copy.numel())


def test_a_copy_is_dense_whatever_was_copied() -> None:
    rows = torch.arange(12, dtype=torch.float32).view(3, 4)

    copy = WeightMemory(CHUNK).copy_of(rows.t())

    assert copy.is_contiguous()
    assert torch.equal(copy, rows.t())


def test_small_weights_share_a_chunk_and_a_large_one_has_its_own() -> None:
    memory = WeightMemory(CHUNK)
    first, second, large = (memory.copy_of(torch.zeros(size, dtype=torch.uint8)) for size in (100, 200, 2 * CHUNK))

    assert first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()
    assert large.untyped_storage().data_ptr() != first.untyped_storage().data_ptr()


def test_a_chunk_lives_as_long_as_a_tensor_in_it() -> None:
    size = 64 << 20
    memory = WeightMemory(size)
    kept = memory.copy_of(torch.full((size // 2,), 7, dtype=torch.uint8))
    resident = psutil.Process().memory_info().rss
    lost = [memory.copy_of(torch.ones(size, dtype=torch.uint8)) for _ in range(3)]
    assert psutil.Process().memory_info().rss > resident + 2 * size

    del lost
    memory.copy_of(torch.zeros(size, dtype=torch.uint8))
    gc.collect()

    assert psutil.Process().memory_info().rss < resident + 2 * size
    assert kept.eq(7).all()


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="only Linux says which memory is to be huge")
def test_the_system_is_told() -> None:
    memory = prefer_huge_pages(torch.empty(4 * HUGE_PAGE_BYTES, dtype=torch.uint8))

    middle = memory.data_ptr() + 2 * HUGE_PAGE_BYTES
    assert "hg" in _flags_of(middle)


def _flags_of(address: int) -> list[str]:
    """What the kernel knows of the mapping around an address."""
    inside = False
    with Path("/proc/self/smaps").open() as lines:
        for line in lines:
            head = line.split(maxsplit=1)[0]
            if "-" in head and not head.endswith(":"):
                begin, end = (int(part, 16) for part in head.split("-"))
                inside = begin <= address < end
            elif inside and head == "VmFlags:":
                return line.split()[1:]
    raise AssertionError("no mapping around the address")
