"""Running out of memory, told apart from other failures of torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

_HOST_ALLOCATOR = "DefaultCPUAllocator"


@contextmanager
def as_memory_errors() -> Iterator[None]:
    """Raises MemoryError in place of whatever torch raises where a device or the host has no memory left.

    The engine, which knows no torch, answers that with a smaller step.
    """
    try:
        yield
    except torch.OutOfMemoryError as failure:
        raise MemoryError(_first_line(failure)) from failure
    except RuntimeError as failure:
        # torch has a type of its own for devices alone; for the host there is only the allocator's name.
        if _HOST_ALLOCATOR in str(failure):
            raise MemoryError(_first_line(failure)) from failure
        raise


def _first_line(failure: Exception) -> str:
    """What follows in torch's messages is advice for another program, or its own stack."""
    return str(failure).partition("\n")[0]
