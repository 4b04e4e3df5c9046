from __future__ import annotations

import pytest
from tests.kernel_sets import ON_CPU, kernel_set_or_skip

from quantgate_kernels.kernel_set import KernelSet
from quantgate_kernels.registry import make_kernel_set


@pytest.fixture(params=ON_CPU)
def kernels(request: pytest.FixtureRequest) -> KernelSet:
    """Every kernel set that runs on CPUs."""
    return kernel_set_or_skip(request.param)


@pytest.fixture(params=ON_CPU)
def lone_row_kernels(request: pytest.FixtureRequest) -> KernelSet:
    """Every deterministic variant that runs on CPUs."""
    kernel_set_or_skip(request.param)
    return make_kernel_set(request.param, deterministic=True)
