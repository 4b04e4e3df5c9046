from __future__ import annotations

import pytest
import torch
from benchmarks.kernels.beside_bounds import ROWS, BesideBound, print_summary
from pytest_benchmark.fixture import BenchmarkFixture

from quantgate_kernels.cpu.kernels import CpuKernels
from quantgate_kernels.device_limits import measure_device_limits
from quantgate_kernels.reference.kernels import ReferenceKernels
from quantgate_kernels.roofline import DeviceLimits


def pytest_configure(config: pytest.Config) -> None:
    config.stash[ROWS] = []


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(config: pytest.Config) -> None:
    if config.stash[ROWS]:
        print_summary(config.stash[ROWS])


@pytest.fixture(scope="session")
def limits() -> DeviceLimits:
    """Measured first, with as many threads as torch and so the kernels take."""
    return measure_device_limits()


@pytest.fixture
def beside_bound(benchmark: BenchmarkFixture, limits: DeviceLimits, pytestconfig: pytest.Config) -> BesideBound:
    return BesideBound(benchmark, limits, pytestconfig.stash[ROWS])


@pytest.fixture(scope="session")
def cpu() -> CpuKernels:
    return CpuKernels()


@pytest.fixture(scope="session")
def reference() -> ReferenceKernels:
    return ReferenceKernels()


@pytest.fixture(autouse=True)
def without_autograd() -> object:
    with torch.inference_mode():
        yield
