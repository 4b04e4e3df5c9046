"""Running out of memory, told apart from other failures of torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from quantgate_engine.errors import ConfigurationError

_WORDS = (
    "DefaultCPUAllocator",
    "CUDA error: out of memory",
    "HIP error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "HIPBLAS_STATUS_ALLOC_FAILED",
)
"""The host's allocator; what drivers say of memory that is not torch's, such as pinned pages; libraries of GPUs."""


@contextmanager
def as_memory_errors() -> Iterator[None]:
    """Raises MemoryError in place of whatever torch raises where a device or the host has no memory left.

    The engine, which knows no torch, answers that with a smaller step.
    """
    try:
        yield
    except RuntimeError as failure:
        raise_memory_error(failure)
        raise


def raise_memory_error(failure: RuntimeError) -> None:
    """Raises MemoryError in place of a failure of torch that is one; see `as_memory_errors`."""
    # torch has a type of its own only for what its allocator of device memory could not get.
    if isinstance(failure, torch.OutOfMemoryError) or any(words in str(failure) for words in _WORDS):
        raise MemoryError(_first_line(failure)) from failure


@contextmanager
def refusing_what_does_not_fit(what: str, advice: str) -> Iterator[None]:
    """Raises ConfigurationError where memory runs out; `what` does not fit, `advice` says what to do."""
    try:
        with as_memory_errors():
            yield
    except MemoryError as failure:
        raise ConfigurationError(f"{what} does not fit into the device's memory ({failure}); {advice}.") from failure


def _first_line(failure: Exception) -> str:
    """What follows in torch's messages is advice for another program, or its own stack."""
    return str(failure).partition("\n")[0]
