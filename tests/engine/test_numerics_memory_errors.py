"""Torch's ways to say that memory ran out are one error here, and its other failures stay what they are."""

from __future__ import annotations

import pytest
import torch

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.executor.memory_errors import as_memory_errors, refusing_what_does_not_fit


def test_host_memory_that_ran_out_is_a_memory_error() -> None:
    with pytest.raises(MemoryError, match="DefaultCPUAllocator"), as_memory_errors():
        torch.empty(1 << 60, dtype=torch.int8)


def test_device_memory_that_ran_out_is_a_memory_error_of_one_line() -> None:
    with pytest.raises(MemoryError) as told, as_memory_errors():
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nSee the documentation.")
    assert str(told.value) == "CUDA out of memory. Tried to allocate 2 GiB."


@pytest.mark.parametrize(
    "words",
    [
        "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "HIP error: out of memory",
    ],
)
def test_what_drivers_and_libraries_say_is_a_memory_error(words: str) -> None:
    with pytest.raises(MemoryError) as told, as_memory_errors():
        raise RuntimeError(words)
    assert str(told.value) == words.partition("\n")[0]


def test_what_does_not_fit_when_it_is_made_is_refused_in_one_sentence() -> None:
    expected = r"^The model does not fit into the device's memory \(CUDA out of memory\.\); take a smaller one\.$"
    with (
        pytest.raises(ConfigurationError, match=expected),
        refusing_what_does_not_fit("The model", "take a smaller one"),
    ):
        raise torch.OutOfMemoryError("CUDA out of memory.\nmore")


def test_another_failure_stays_what_it_is() -> None:
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), as_memory_errors():
        torch.ones(2, 3) @ torch.ones(2, 3)
