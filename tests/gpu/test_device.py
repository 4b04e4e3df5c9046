"""Where the Triton kernels run, and what is said where they cannot."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from contextlib import nullcontext
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

import pytest
import torch
from tests.gpu.triton_processes import ROOT

from quantgate_kernels import registry
from quantgate_kernels.gpu import device
from quantgate_kernels.gpu.device import INTERPRETER, Device, find_device
from quantgate_kernels.registry import TRITON, make_kernel_set
from quantgate_kernels.unavailable import KernelSetUnavailableError

TRITON_VERSION = device.triton_version


@pytest.fixture(autouse=True)
def with_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: object())
    monkeypatch.setattr(device, "triton_version", lambda: None)
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


def test_a_triton_that_is_too_old_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for found, old in (("3.5.1", True), ("2.1.0", True), ("3.6.0", False), ("3.10", False), (None, False)):
        monkeypatch.setattr(device, "triton_version", lambda found=found: found)
        with pytest.raises(KernelSetUnavailableError, match=f"Triton {found}") if old else nullcontext():
            device.require_triton()


def test_the_oldest_triton_is_the_extra_s() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    oldest = ".".join(map(str, device.OLDEST_TRITON))
    assert any(one.startswith(f"triton>={oldest};") for one in project["project"]["optional-dependencies"]["gpu"])


def test_a_build_of_pytorch_s_own_has_a_version_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        if package != "pytorch-triton-rocm":
            raise PackageNotFoundError(package)
        return "3.6.0"

    monkeypatch.setattr(device, "version", version)
    assert TRITON_VERSION() == "3.6.0"


def test_a_triton_that_cannot_be_imported_leaves_auto_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    show_gpu(monkeypatch, major=9, minor=0, multi_processor_count=132)
    # As Python has it of a module that cannot be imported.
    monkeypatch.setitem(sys.modules, "quantgate_kernels.gpu.kernels", None)
    registry._fastest.cache_clear()
    try:
        assert make_kernel_set("auto", "cuda").name == "reference"
    finally:
        registry._fastest.cache_clear()
    assert "Triton cannot be imported" in caplog.text


def test_a_cpu_takes_it_in_the_interpreter_alone() -> None:
    with pytest.raises(KernelSetUnavailableError, match="do not run on the device cpu"):
        make_kernel_set(TRITON, "cpu")
