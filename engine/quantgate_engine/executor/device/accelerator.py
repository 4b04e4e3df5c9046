"""What an executor asks of a device that works beside the host: memory, transfers, recorded work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor


class RecordedWork(Protocol):
    """`replay` does it again, over whatever then stands in the memory that it reads; `result` is where it writes."""

    @property
    def result(self) -> Tensor: ...

    def replay(self) -> None: ...


class Accelerator(Protocol):
    """Work that is handed to it is done in order; it goes on while the host does something else."""

    device: torch.device

    def staging(self, num_bytes: int) -> Tensor:
        """uint8 [num_bytes] of the host, pinned where that helps: copies between it and the device then go on alone.

        It may be let go while one is under way, and is handed to the next who asks when that is done.
        """
        ...

    def memory(self, num_bytes: int) -> Tensor:
        """uint8 [num_bytes] on the device."""
        ...

    def finish(self) -> None:
        """Returns when all that was handed over is done."""
        ...

    def record(self, work: Callable[[], Tensor]) -> RecordedWork:
        """Does `work` once, so that nothing is left to be set up, and records it."""
        ...

    def joules(self) -> float | None:
        """Energy that it has taken since some moment; None where it does not tell."""
        ...

    def free_bytes(self) -> int:
        """Bytes that an allocation can take now."""
        ...

    def peak_bytes(self, work: Callable[[], None]) -> int:
        """Does `work`, and says how much more memory was taken at once than before it."""
        ...
