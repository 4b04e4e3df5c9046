from __future__ import annotations

import pytest
from tests.kernel_sets import kernel_set_or_skip

from quantgate_kernels.kernel_set import KernelSet
from quantgate_kernels.registry import KERNEL_SETS


@pytest.fixture(params=list(KERNEL_SETS))
def kernels(request: pytest.FixtureRequest) -> KernelSet:
    """Every kernel set that runs on this machine."""
    return kernel_set_or_skip(request.param)
