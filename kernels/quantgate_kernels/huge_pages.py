"""Host memory in huge pages, where the system has them: for what each step reads, weights and the KV cache.

In pages of 4 KiB a processor waits for an address at each page's begin, and its fetching ahead ends with the page.
"""

from __future__ import annotations

import ctypes
import mmap
import threading

import torch
from torch import Tensor

HUGE_PAGE_BYTES = 2 << 20
CHUNK_BYTES = 32 << 20
"""Asked for at once: most weights are smaller than a huge page, and lie in one together."""

CACHE_LINE = 64


def prefer_huge_pages(memory: Tensor) -> Tensor:
    """The tensor itself. Helps only memory that nothing has been written to yet; only huge pages within it can be huge.

    What cannot be helped stays as it is: memory of a GPU, and systems or kernels without huge pages.
    """
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    if advice is not None and memory.device.type == "cpu":
        begin = -(-memory.data_ptr() // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES
        end = (memory.data_ptr() + memory.numel() * memory.element_size()) // HUGE_PAGE_BYTES * HUGE_PAGE_BYTES
        if begin < end:
            # It is advice: a kernel that does not take it says so, and nothing is different.
            ctypes.CDLL(None).madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), advice)
    return memory


class WeightMemory:
    """Hands out parts of chunks. A chunk is given back to the system when the last tensor in it is gone."""

    def __init__(self, chunk_bytes: int = CHUNK_BYTES) -> None:
        self._chunk_bytes = chunk_bytes
        self._lock = threading.Lock()
        self._free = torch.empty(0, dtype=torch.uint8)

    def copy_of(self, numbers: Tensor) -> Tensor:
        """The same numbers, dense, from the begin of a cache line on."""
        part = self._take(numbers.numel() * numbers.element_size())
        return part.view(numbers.dtype).view(numbers.shape).copy_(numbers)

    def _take(self, count: int) -> Tensor:
        """uint8 [count]. Where the chunk at hand is too small, another takes its place."""
        padded = -(-count // CACHE_LINE) * CACHE_LINE
        with self._lock:
            if self._free.numel() < padded:
                self._free = _chunk(max(self._chunk_bytes, padded))
            part, self._free = self._free[:count], self._free[padded:]
        return part


def _chunk(count: int) -> Tensor:
    memory = torch.empty(count + CACHE_LINE, dtype=torch.uint8)
    first = -memory.data_ptr() % CACHE_LINE
    return prefer_huge_pages(memory[first : first + count])


WEIGHT_MEMORY = WeightMemory()
"""Of all models in the process: the next one begins in the chunk where the last one ended."""
