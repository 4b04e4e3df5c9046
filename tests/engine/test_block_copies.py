"""Copies of blocks, on the host and on a device beside it: in their order, in every layer, scales too."""

from __future__ import annotations

import random
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.tape_accelerator import TapeAccelerator
from torch import Tensor

from quantgate_engine.executor.base import BlockCopy, CopyKind
from quantgate_engine.executor.block_copies import CarryOut, HostBlockCopies
from quantgate_engine.executor.device import device_block_copies
from quantgate_engine.executor.device.device_block_copies import DeviceBlockCopies, StagedBlocks, runs_side_by_side
from quantgate_engine.executor.kv_format import KVPlane
from quantgate_kernels.reference.kernels import ReferenceKernels

BLOCKS = 5
PLANES = [KVPlane(4, (8, 3, 16), torch.int8), KVPlane(4, (8, 3), torch.float32)]
BLOCK_NUMBERS = st.integers(0, BLOCKS - 1)
COPIES = st.lists(st.builds(BlockCopy, st.just("r"), st.sampled_from(CopyKind), BLOCK_NUMBERS, BLOCK_NUMBERS))


def copying(device: bool, pool: list[Tensor]) -> CarryOut:
    if not device:
        swapped = [torch.zeros(plane.parts, BLOCKS, *plane.row, dtype=plane.dtype) for plane in PLANES]
        return HostBlockCopies(pool, swapped)
    accelerator = TapeAccelerator()
    staged = StagedBlocks(PLANES, BLOCKS, accelerator)
    return DeviceBlockCopies(ReferenceKernels(), accelerator, pool, staged, BLOCKS)


@pytest.mark.parametrize("staged_blocks", [1, 2, BLOCKS, None], ids=str)
@given(copies=COPIES)
def test_every_part_of_every_block_ends_where_the_copies_one_by_one_bring_it(
    staged_blocks: int | None, copies: list[BlockCopy]
) -> None:
    """staged_blocks: on a device; None is the host."""
    pool = [torch.zeros(plane.parts, BLOCKS, *plane.row, dtype=plane.dtype) for plane in PLANES]
    for part, block in product(range(4), range(BLOCKS)):
        for plane in pool:
            plane[part, block] = 10 * (part + 1) + block
    with pytest.MonkeyPatch.context() as patch:
        block_bytes = sum(plane.block_bytes for plane in PLANES)
        patch.setattr(device_block_copies, "STAGED_BYTES", block_bytes * (staged_blocks or 0))
        carry_out = copying(staged_blocks is not None, pool)
    there, swapped = list(range(BLOCKS)), [-1] * BLOCKS
    for copy in copies:
        read = swapped if copy.kind is CopyKind.SWAP_IN else there
        written = swapped if copy.kind is CopyKind.SWAP_OUT else there
        written[copy.target] = read[copy.source]
    # In two calls, as of two steps: what was swapped out by the first is there for the second.
    carry_out(copies[: len(copies) // 2])
    carry_out(copies[len(copies) // 2 :])
    for part, plane in product(range(4), pool):
        assert [set(block.flatten().tolist()) for block in plane[part]] == [
            {0 if origin == -1 else 10 * (part + 1) + origin} for origin in there
        ]


@given(copies=COPIES, staged_blocks=st.integers(1, 3), seed=st.integers(0, 9))
def test_the_order_within_a_run_does_not_matter(copies: list[BlockCopy], staged_blocks: int, seed: int) -> None:
    runs = list(runs_side_by_side(copies, staged_blocks))
    assert [copy for run in runs for copy in run] == copies
    for run in runs:
        assert len({copy.kind for copy in run}) == 1
        assert run[0].kind is CopyKind.FORK or len(run) <= staged_blocks
        forks = run[0].kind is CopyKind.FORK
        source = list(range(BLOCKS))
        target = source if forks else [-1] * BLOCKS
        in_order, shuffled = list(target), list(target)
        for copy in run:
            in_order[copy.target] = in_order[copy.source] if forks else source[copy.source]
        for copy in random.Random(seed).sample(run, len(run)):
            shuffled[copy.target] = shuffled[copy.source] if forks else source[copy.source]
        assert in_order == shuffled


def test_copies_that_do_not_meet_are_one_run() -> None:
    forks = [BlockCopy("r", CopyKind.FORK, 0, target) for target in (1, 2, 3)]
    out = [BlockCopy("r", CopyKind.SWAP_OUT, block, block) for block in range(3)]
    assert [len(run) for run in runs_side_by_side([*forks, *out], 8)] == [3, 3]
