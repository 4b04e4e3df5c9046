"""Engine settings for every kernel set that runs on this machine."""

from __future__ import annotations

from typing import get_args

import pytest

from quantgate_kernels.kernel_set_names import AUTO, KernelSetName
from quantgate_kernels.registry import make_kernel_set
from quantgate_kernels.unavailable import KernelSetUnavailableError

NAMED_SETS: tuple[KernelSetName, ...] = tuple(name for name in get_args(KernelSetName) if name != AUTO)


def runnable(kernel_set: KernelSetName) -> KernelSetName:
    """Skips the test where the machine cannot run the set."""
    try:
        make_kernel_set(kernel_set)
    except KernelSetUnavailableError as unavailable:
        pytest.skip(str(unavailable))
    return kernel_set
