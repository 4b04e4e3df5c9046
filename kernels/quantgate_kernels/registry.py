"""Which kernel sets there are. A set is made per executor, because it records the paths that it took."""

from __future__ import annotations

from collections.abc import Callable

from quantgate_kernels.kernel_set import KernelSet
from quantgate_kernels.reference.kernels import ReferenceKernels

KERNEL_SETS: dict[str, Callable[[], KernelSet]] = {ReferenceKernels.name: ReferenceKernels}


def make_kernel_set(name: str = ReferenceKernels.name) -> KernelSet:
    """Raises KeyError, with the known names, for an unknown one."""
    if name not in KERNEL_SETS:
        raise KeyError(f"unknown kernel set {name!r}; known: {', '.join(sorted(KERNEL_SETS))}")
    return KERNEL_SETS[name]()
