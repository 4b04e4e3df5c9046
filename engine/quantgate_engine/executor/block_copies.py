"""Copies of whole KV blocks: forks on the device, and swaps between it and host memory."""

from __future__ import annotations

from collections.abc import Sequence

from quantgate_engine.executor.base import BlockCopy, CopyKind
from quantgate_kernels.types import KVLayer


def copy_blocks(copies: Sequence[BlockCopy], device: Sequence[KVLayer], host: Sequence[KVLayer]) -> None:
    """Carries `copies` out in their order, each in all layers. Bound: 2 x bytes of a block, read and written.

    On a GPU they are only begun here: whatever comes after them on it finds them done, the next copies too.
    """
    places = {
        CopyKind.FORK: (device, device),
        CopyKind.SWAP_OUT: (device, host),
        CopyKind.SWAP_IN: (host, device),
    }
    for copy in copies:
        for source, target in zip(*places[copy.kind], strict=True):
            for read, written in zip(source.tensors(), target.tensors(), strict=True):
                written[copy.target].copy_(read[copy.source], non_blocking=True)
