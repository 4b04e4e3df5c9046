from __future__ import annotations

import pytest

from quantgate_kernels.kernel_set import KernelSet
from quantgate_kernels.registry import KERNEL_SETS, make_kernel_set
from quantgate_kernels.unavailable import KernelSetUnavailableError


@pytest.fixture(params=list(KERNEL_SETS))
def kernels(request: pytest.FixtureRequest) -> KernelSet:
    """Every kernel set that runs on this machine."""
    try:
        return make_kernel_set(request.param)
    except KernelSetUnavailableError as unavailable:
        pytest.skip(str(unavailable))
