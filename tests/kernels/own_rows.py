"""What it means that rows have bits of their own, for any operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

DTYPES = (torch.float32, torch.bfloat16)
ROWS = 11
GROUPS = ([0], [10], [1, 0], [2, 3, 4], [9, 7, 5, 3, 1], [3] * 6, [10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0])
"""Rows that are computed together: alone, in pairs, at other places, in whole and broken tiles."""


@contextmanager
def on_threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def assert_rows_are_their_own(compute: Callable[[list[int]], Tensor]) -> None:
    """`compute` gives the results of these rows, which it computes together."""
    with on_threads(1):
        expected = compute(list(range(ROWS)))
        for group in GROUPS:
            assert torch.equal(compute(group), expected[group]), f"rows {group}"
    for threads in (2, 3):
        with on_threads(threads):
            assert torch.equal(compute(GROUPS[-1]), expected[GROUPS[-1]]), f"{threads} threads"
