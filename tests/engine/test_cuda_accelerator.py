"""What the one file for real GPUs asks of torch, and in which order; stand-ins take the place of torch's functions."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from quantgate_engine.executor.device.cuda_accelerator import CudaAccelerator

DEVICE = torch.device("cuda", 0)


class Stream:
    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self._log = log

    def wait_stream(self, other: Stream) -> None:
        self._log.append(f"{self.name} waits for {other.name}")

    def synchronize(self) -> None:
        self._log.append(f"host waits for {self.name}")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    log: list[str] = []
    captured = inspect.signature(torch.cuda.graph)

    class Graph:
        def replay(self) -> None:
            log.append("replay")

    @contextmanager
    def on_stream(stream: Stream) -> Iterator[None]:
        log.append(f"on {stream.name}")
        yield

    @contextmanager
    def capture(*given: Any, **named: Any) -> Iterator[None]:
        arguments = captured.bind(*given, **named).arguments
        log.append(f"capture on {arguments['stream'].name} into {arguments['pool']}")
        yield

    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _device: SimpleNamespace(uuid="12-ab"))
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: "the pool")
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _device: Stream("current", log))
    monkeypatch.setattr(torch.cuda, "Stream", lambda _device: log.append("a stream is made") or Stream("side", log))
    monkeypatch.setattr(torch.cuda, "stream", on_stream)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", capture)
    return log


def test_work_is_done_once_before_it_is_captured(log: list[str]) -> None:
    results = [torch.zeros(1), torch.ones(1)]

    def work() -> torch.Tensor:
        log.append("work")
        return results[log.count("work") - 1]

    recorded = CudaAccelerator(DEVICE).record(work)
    assert log == [
        "a stream is made", "side waits for current", "on side", "work", "current waits for side",
        "capture on side into the pool", "work",
    ]  # fmt: skip
    assert recorded.result is results[1]
    recorded.replay()
    assert log[-1] == "replay"


def test_all_recordings_are_made_on_one_stream(log: list[str]) -> None:
    accelerator = CudaAccelerator(DEVICE)
    for _ in range(2):
        accelerator.record(lambda: torch.zeros(1))
    assert log.count("a stream is made") == 1


def test_the_host_waits_for_the_stream_that_work_is_on(log: list[str]) -> None:
    CudaAccelerator(DEVICE).finish()
    assert log == ["host waits for current"]


def test_a_peak_is_what_is_taken_beyond_what_was_there(log: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _device: 100)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda _device: log.append("reset"))
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda _device: 170)
    assert CudaAccelerator(DEVICE).peak_bytes(lambda: log.append("work")) == 70
    assert log == ["reset", "work", "host waits for current"]


def test_cached_memory_is_given_back_before_free_memory_is_counted(
    log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: log.append("empty"))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _device: 50)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _device: 40)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _device: (1000, 2000))
    assert CudaAccelerator(DEVICE).free_bytes() == 1010
    assert log == ["empty"]
