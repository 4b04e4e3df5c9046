"""Engine settings for every kernel set that runs on CPUs."""

from __future__ import annotations

from typing import get_args

from tests.kernel_sets import ON_CPU, kernel_set_or_skip

from quantgate_kernels.kernel_set_names import KernelSetName

NAMED_SETS: tuple[KernelSetName, ...] = tuple(name for name in get_args(KernelSetName) if name in ON_CPU)


def runnable(kernel_set: KernelSetName) -> KernelSetName:
    """Skips the test where the machine cannot run the set."""
    kernel_set_or_skip(kernel_set)
    return kernel_set
