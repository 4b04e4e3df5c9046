"""Times of calls on the GPU's own clock, with nothing of their operands in its cache."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import torch

FLUSH_BYTES = 512 * 1024**2
"""Several times the largest cache of any GPU."""
REPEATS = 15
WARM_UPS = 2


class Stopwatch:
    """Calls are recorded as CUDA graphs and replayed, as decode steps are: else launches of small kernels are timed."""

    def __init__(self, device: torch.device) -> None:
        self._flush = torch.zeros(FLUSH_BYTES // 4, device=device)
        self._device = device

    def seconds(self, call: Callable[[], object]) -> float:
        """The median of some repeats. Before each, the cache is filled with something else, which is not timed.

        That is read, not written: what was written would go back to memory while the call runs.
        """
        replay = self._recorded(call)
        events = [tuple(torch.cuda.Event(enable_timing=True) for _ in range(2)) for _ in range(WARM_UPS + REPEATS)]
        for begin, end in events:
            self._flush.sum()
            begin.record()
            replay()
            end.record()
        torch.cuda.synchronize(self._device)
        return median(begin.elapsed_time(end) for begin, end in events[WARM_UPS:]) / 1e3

    def _recorded(self, call: Callable[[], object]) -> Callable[[], object]:
        """What cannot be recorded is called as it is."""
        side = torch.cuda.Stream(self._device)
        side.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(side):
            # Compiles, and makes workspaces, which a recording may not.
            call()
        torch.cuda.synchronize(self._device)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=side):
                call()
        except RuntimeError:
            torch.cuda.synchronize(self._device)
            return call
        return graph.replay
