"""Copies of whole KV blocks on a device, and between it and memory of the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from quantgate_engine.executor.base import BlockCopy, CopyKind
from quantgate_engine.executor.device.accelerator import Accelerator
from quantgate_engine.executor.kv_format import KVPlane
from quantgate_kernels.kernel_set import KernelSet

STAGED_BYTES = 32 << 20
"""Blocks on their way are gathered in so much of the device's memory, or in one block of it."""


class StagedBlocks:
    """Blocks on their way between the pool and the host: each is one stretch here and there, and many in the pool.

    So a kernel gathers or spreads the parts of many, and one transfer moves each.
    """

    def __init__(self, planes: Sequence[KVPlane], host_blocks: int, accelerator: Accelerator) -> None:
        self.count = min(host_blocks, max(1, STAGED_BYTES // sum(plane.block_bytes for plane in planes)))
        self.block_bytes = [plane.block_bytes for plane in planes]
        self.memory = [accelerator.memory(self.count * size) for size in self.block_bytes]
        self.planes = [
            memory.view(plane.dtype).view(self.count, plane.parts, *plane.row).transpose(0, 1)
            for memory, plane in zip(self.memory, planes, strict=True)
        ]


class DeviceBlockCopies:
    """One kernel for each run of copies that may run side by side. All is begun here, and nothing waited for.

    Whatever comes after it on the device finds it done; nobody on the host reads what was swapped out.
    """

    def __init__(
        self,
        kernels: KernelSet,
        accelerator: Accelerator,
        pool: Sequence[Tensor],
        staged: StagedBlocks,
        host_blocks: int,
    ) -> None:
        """pool: one tensor for each plane."""
        self._kernels = kernels
        self._accelerator = accelerator
        self._pool = pool
        self._staged = staged
        # Zeroed, because pages that nothing was written to may not be there yet.
        self._host = [accelerator.staging(host_blocks * size).zero_() for size in staged.block_bytes]

    def __call__(self, copies: Sequence[BlockCopy]) -> None:
        runs = list(runs_side_by_side(copies, self._staged.count))
        pairs = self._sent([pair for run in runs for pair in _pairs_on_device(run)])
        begin = 0
        for run in runs:
            self._carry_out(run, pairs[begin : begin + len(run)])
            begin += len(run)

    def _carry_out(self, run: Sequence[BlockCopy], pairs: Tensor) -> None:
        kind = run[0].kind
        if kind is CopyKind.FORK:
            self._copy(self._pool, self._pool, pairs)
        elif kind is CopyKind.SWAP_OUT:
            self._copy(self._pool, self._staged.planes, pairs)
            self._transfer(self._staged.memory, self._host, [(at, copy.target) for at, copy in enumerate(run)])
        else:
            self._transfer(self._host, self._staged.memory, [(copy.source, at) for at, copy in enumerate(run)])
            self._copy(self._staged.planes, self._pool, pairs)

    def _copy(self, source: Sequence[Tensor], target: Sequence[Tensor], pairs: Tensor) -> None:
        for read, written in zip(source, target, strict=True):
            self._kernels.copy_blocks(read, written, pairs)

    def _transfer(self, source: Sequence[Tensor], target: Sequence[Tensor], moved: Sequence[tuple[int, int]]) -> None:
        for read, written, size in zip(source, target, self._staged.block_bytes, strict=True):
            for at, to in moved:
                written[to * size : (to + 1) * size].copy_(read[at * size : (at + 1) * size], non_blocking=True)

    def _sent(self, pairs: Sequence[tuple[int, int]]) -> Tensor:
        """int32 [N, 2] on the device. The host's allocator hands pinned memory on when the copy from it is done."""
        numbers = torch.tensor(pairs, dtype=torch.int32).view(torch.uint8).view(-1)
        staging = self._accelerator.staging(numbers.numel())
        staging.copy_(numbers)
        there = self._accelerator.memory(numbers.numel())
        there.copy_(staging, non_blocking=True)
        return there.view(torch.int32).view(-1, 2)


def runs_side_by_side(copies: Sequence[BlockCopy], staged_blocks: int) -> Iterator[list[BlockCopy]]:
    """The copies in their order, in runs of one kind; within a run their order does not matter.

    A run of swaps has no more than `staged_blocks`.
    """
    run: list[BlockCopy] = []
    read: set[int] = set()
    written: set[int] = set()
    for copy in copies:
        # Within one memory a block may be both; what a swap reads and what it writes are numbers of two memories.
        forks = copy.kind is CopyKind.FORK
        meets = copy.target in written or (forks and (copy.source in written or copy.target in read))
        if run and (copy.kind is not run[0].kind or meets or (not forks and len(run) == staged_blocks)):
            yield run
            run, read, written = [], set(), set()
        run.append(copy)
        read.add(copy.source)
        written.add(copy.target)
    if run:
        yield run


def _pairs_on_device(run: Sequence[BlockCopy]) -> Iterator[tuple[int, int]]:
    """Block read, block written: of the pool, but where a swap stages them one after the other."""
    for at, copy in enumerate(run):
        source = at if copy.kind is CopyKind.SWAP_IN else copy.source
        target = at if copy.kind is CopyKind.SWAP_OUT else copy.target
        yield source, target
