"""GPUs by torch's own interface: NVIDIA's, and AMD's by the same names. The one file that no test without one runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from quantgate_engine.executor.device.nvml_energy import Joules, energy_counter
from quantgate_engine.executor.free_memory import free_bytes


class _CapturedWork(NamedTuple):
    graph: torch.cuda.CUDAGraph
    result: Tensor

    def replay(self) -> None:
        self.graph.replay()


def _energy_counter(device: torch.device) -> Joules:
    if torch.version.hip is not None:
        # The library that counts here is NVIDIA's.
        return lambda: None
    return energy_counter(str(torch.cuda.get_device_properties(device).uuid))


class CudaAccelerator:
    """Implements `Accelerator` on the current stream of one GPU."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._energy = _energy_counter(device)
        # All recordings share what they allocate: one is replayed at a time, and its result read before the next.
        self._graph_memory = torch.cuda.graph_pool_handle()

    def staging(self, num_bytes: int) -> Tensor:
        return torch.empty(num_bytes, dtype=torch.uint8, pin_memory=True)

    def memory(self, num_bytes: int) -> Tensor:
        return torch.empty(num_bytes, dtype=torch.uint8, device=self.device)

    def finish(self) -> None:
        torch.cuda.current_stream(self.device).synchronize()

    def record(self, work: Callable[[], Tensor]) -> _CapturedWork:
        """Not on the default stream, which cannot be captured.

        What is done first compiles kernels and makes workspaces, which a capture may not.
        """
        current, side = torch.cuda.current_stream(self.device), self._recording_stream
        side.wait_stream(current)
        with torch.cuda.stream(side):
            work()
        current.wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        # Other threads of the program may use the GPU meanwhile.
        with torch.cuda.graph(graph, pool=self._graph_memory, stream=side, capture_error_mode="thread_local"):
            result = work()
        return _CapturedWork(graph, result)

    def joules(self) -> float | None:
        return self._energy()

    @cached_property
    def _recording_stream(self) -> torch.cuda.Stream:
        """One for all recordings: libraries keep a workspace for each stream, of tens of megabytes."""
        return torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]  # torch has no types for it

    def free_bytes(self) -> int:
        torch.cuda.empty_cache()
        return free_bytes(self.device)

    def peak_bytes(self, work: Callable[[], None]) -> int:
        before = torch.cuda.memory_allocated(self.device)
        torch.cuda.reset_peak_memory_stats(self.device)
        work()
        self.finish()
        return torch.cuda.max_memory_allocated(self.device) - before
