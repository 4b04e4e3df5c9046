"""Joules by a stand-in for NVIDIA's library, whose functions have the names of the package `nvidia-ml-py`."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
import torch

from quantgate_engine.executor.device import cuda_accelerator
from quantgate_engine.executor.device.nvml_energy import energy_counter


class NVMLError(Exception):
    pass


class Library:
    """A driver that knows one GPU."""

    NVMLError = NVMLError

    def __init__(self, *, is_loaded: bool = True, counts: bool = True) -> None:
        self.millijoules = 5_000
        self.counts = counts
        self._is_loaded = is_loaded

    def nvmlInit(self) -> None:
        if not self._is_loaded:
            raise NVMLError("Driver Not Loaded")

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid != "GPU-12-ab":
            raise NVMLError("Not Found")
        return "the GPU"

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:
        if handle != "the GPU" or not self.counts:
            raise NVMLError("Not Supported")
        return self.millijoules


def test_the_counter_is_that_of_the_gpu_with_this_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    monkeypatch.setitem(sys.modules, "pynvml", library)
    joules = energy_counter("12-ab")
    before = joules()
    library.millijoules += 2_500
    assert (before, joules()) == (5.0, 7.5)
    assert energy_counter("another")() is None
    library.counts = False
    assert joules() is None


@pytest.mark.parametrize("library", [None, Library(is_loaded=False), Library(counts=False)], ids=["none", "no", "old"])
def test_what_is_not_told_is_none(library: Library | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """None in place of a module: the package is not installed."""
    monkeypatch.setitem(sys.modules, "pynvml", library)
    assert energy_counter("12-ab")() is None


@pytest.mark.parametrize(("hip", "joules"), [(None, 5.0), ("6.4", None)])
def test_amds_gpus_do_not_ask_nvidias_library(
    hip: str | None, joules: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Library())
    monkeypatch.setattr(torch.version, "hip", hip)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _device: SimpleNamespace(uuid="12-ab"))
    assert cuda_accelerator.CudaAccelerator(torch.device("cuda", 0)).joules() == joules
