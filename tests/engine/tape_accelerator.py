"""A device that is the CPU: what it records are the operations themselves, with the tensors that they were done on.

So a replay finds what a CUDA graph finds: the same tensors, whatever stands in them, and of Python nothing any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

POISON = 0x7F
"""In every byte of an integer: an index that nothing has."""
READS = (
    torch.ops.aten._local_scalar_dense.default,
    torch.ops.aten.item.default,
    torch.ops.aten.is_nonzero.default,
    torch.ops.aten.equal.default,
)
"""What a device that records refuses: the host would wait for a number."""


class Tape(TorchDispatchMode):
    """The operations that run inside of it."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, Any, Any, Any]] = []

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if operation in READS:
            raise RuntimeError("operation not permitted when stream is capturing: a number is read of a tensor")
        result = operation(*args, **(kwargs or {}))
        self.calls.append((operation, args, kwargs or {}, result))
        return result


class TapedWork:
    """Implements `RecordedWork`."""

    def __init__(self, work: Callable[[], Tensor]) -> None:
        self.replays = 0
        self._tape = Tape()
        with self._tape:
            self.result = work()

    def replay(self) -> None:
        self.replays += 1
        made: dict[int, Tensor] = {}

        def current(tensor: Tensor) -> Tensor:
            return made.get(id(tensor), tensor)

        for operation, args, kwargs, before in self._tape.calls:
            now = operation(*tree_map_only(Tensor, current, args), **tree_map_only(Tensor, current, kwargs))
            olds = before if isinstance(before, tuple | list) else (before,)
            news = now if isinstance(now, tuple | list) else (now,)
            made |= {id(old): new for old, new in zip(olds, news, strict=True) if isinstance(old, Tensor)}
        self.result.copy_(current(self.result))


class TapeAccelerator:
    """Implements `Accelerator`. What stood on the device while a step ran is spoilt when the step is over."""

    device = torch.device("cpu")

    def __init__(self, free_bytes: int = 1 << 30, peak_bytes: int = 0) -> None:
        self.recorded: list[TapedWork] = []
        self.finished = 0
        self.before_work: Callable[[int], None] = lambda _num_bytes: None
        self._free, self._peak = free_bytes, peak_bytes
        self._memory: list[Tensor] = []

    @property
    def replays(self) -> int:
        return sum(work.replays for work in self.recorded)

    def staging(self, num_bytes: int) -> Tensor:
        return torch.empty(num_bytes, dtype=torch.uint8)

    def memory(self, num_bytes: int) -> Tensor:
        self.before_work(num_bytes)
        self._memory.append(torch.full((num_bytes,), POISON, dtype=torch.uint8))
        return self._memory[-1]

    def finish(self) -> None:
        self.finished += 1
        with torch.inference_mode():
            for memory in self._memory:
                memory.fill_(POISON)

    def record(self, work: Callable[[], Tensor]) -> TapedWork:
        work()
        self.recorded.append(TapedWork(work))
        return self.recorded[-1]

    def joules(self) -> float | None:
        return None

    def free_bytes(self) -> int:
        return self._free

    def peak_bytes(self, work: Callable[[], None]) -> int:
        work()
        return self._peak
