"""Torch's ways to say that memory ran out are one error here, and its other failures stay what they are."""

from __future__ import annotations

import pytest
import torch

from quantgate_engine.executor.memory_errors import as_memory_errors


def test_host_memory_that_ran_out_is_a_memory_error() -> None:
    with pytest.raises(MemoryError, match="DefaultCPUAllocator"), as_memory_errors():
        torch.empty(1 << 60, dtype=torch.int8)


def test_device_memory_that_ran_out_is_a_memory_error_of_one_line() -> None:
    with pytest.raises(MemoryError) as told, as_memory_errors():
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nSee the documentation.")
    assert str(told.value) == "CUDA out of memory. Tried to allocate 2 GiB."


def test_another_failure_stays_what_it_is() -> None:
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), as_memory_errors():
        torch.ones(2, 3) @ torch.ones(2, 3)
