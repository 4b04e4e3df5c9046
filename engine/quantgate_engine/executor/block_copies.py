"""Copies of whole KV blocks in the host's memory: forks, and swaps to the part that holds them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from quantgate_engine.executor.base import BlockCopy, CopyKind

CarryOut = Callable[[Sequence[BlockCopy]], None]
"""Carries copies out in their order, each in all layers; see `Executor.copy_blocks`."""


class HostBlockCopies:
    """Block by block: a block of a layer is a stretch of memory, which is copied as fast as memory goes."""

    def __init__(self, pool: Sequence[Tensor], swapped: Sequence[Tensor]) -> None:
        """Planes of the pool and of the blocks that are swapped out: see `KVPlane`."""
        self._places = {
            CopyKind.FORK: (pool, pool),
            CopyKind.SWAP_OUT: (pool, swapped),
            CopyKind.SWAP_IN: (swapped, pool),
        }

    def __call__(self, copies: Sequence[BlockCopy]) -> None:
        """Bound: 2 x bytes of a block, read and written."""
        for copy in copies:
            for source, target in zip(*self._places[copy.kind], strict=True):
                for read, written in zip(source, target, strict=True):
                    written[copy.target].copy_(read[copy.source])
