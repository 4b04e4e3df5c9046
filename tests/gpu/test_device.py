"""Where the Triton kernels run, and what is said where they cannot."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace

import pytest
import torch

from quantgate_kernels.gpu.device import INTERPRETER, Device, find_device
from quantgate_kernels.registry import TRITON, make_kernel_set
from quantgate_kernels.unavailable import KernelSetUnavailableError


@pytest.fixture(autouse=True)
def with_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: object())
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)


def show_gpu(monkeypatch: pytest.MonkeyPatch, **properties: object) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _index: SimpleNamespace(**properties))


def test_a_gpu_is_known_by_its_capability(monkeypatch: pytest.MonkeyPatch) -> None:
    show_gpu(monkeypatch, major=9, minor=0, multi_processor_count=132)
    assert find_device() == Device("sm90", 132)


def test_one_of_amd_is_known_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "hip", "7.0")
    show_gpu(monkeypatch, gcnArchName="gfx942:sramecc+:xnack-", multi_processor_count=304)
    assert find_device() == Device("gfx942", 304)


def test_the_interpreter_needs_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert find_device() == INTERPRETER


def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(KernelSetUnavailableError, match="torch sees no GPU"):
        make_kernel_set(TRITON, "cuda")
    show_gpu(monkeypatch, name="Old GPU", major=7, minor=5, multi_processor_count=40)
    with pytest.raises(KernelSetUnavailableError, match=r"Old GPU is older than compute capability 8\.0"):
        make_kernel_set(TRITON, "cuda")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(KernelSetUnavailableError, match="Triton is not installed"):
        make_kernel_set(TRITON, "cuda", deterministic=True)


def test_a_cpu_takes_it_in_the_interpreter_alone() -> None:
    with pytest.raises(KernelSetUnavailableError, match="do not run on the device cpu"):
        make_kernel_set(TRITON, "cpu")
