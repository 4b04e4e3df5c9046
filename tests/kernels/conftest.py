from __future__ import annotations

import pytest
from tests.kernel_sets import kernel_set_or_skip

from quantgate_kernels.kernel_set import KernelSet
from quantgate_kernels.registry import DETERMINISTIC_SETS, KERNEL_SETS, make_kernel_set


@pytest.fixture(params=list(KERNEL_SETS))
def kernels(request: pytest.FixtureRequest) -> KernelSet:
    """Every kernel set that runs on this machine."""
    return kernel_set_or_skip(request.param)


@pytest.fixture(params=list(DETERMINISTIC_SETS))
def lone_row_kernels(request: pytest.FixtureRequest) -> KernelSet:
    """Every deterministic variant that runs on this machine."""
    kernel_set_or_skip(request.param)
    return make_kernel_set(request.param, deterministic=True)
