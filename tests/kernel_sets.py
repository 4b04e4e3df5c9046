"""Kernel sets for tests: skipped only where the machine cannot have them, failed where they are broken."""

from __future__ import annotations

from typing import NoReturn

import pytest

from quantgate_kernels.cpu.compiler import find_compiler
from quantgate_kernels.kernel_set import KernelSet
from quantgate_kernels.kernel_set_names import KernelSetName
from quantgate_kernels.reference.kernels import ReferenceKernels
from quantgate_kernels.registry import FASTER_SETS, make_kernel_set
from quantgate_kernels.unavailable import KernelSetUnavailableError

ON_CPU: tuple[str, ...] = (ReferenceKernels.name, *FASTER_SETS["cpu"])
"""Those that tests on CPUs can compute with; `tests/gpu` has the others."""


def kernel_set_or_skip(name: KernelSetName) -> KernelSet:
    """The set. A compiler that is there must build it: a source that no longer compiles may not hide as a skip."""
    try:
        return make_kernel_set(name)
    except KernelSetUnavailableError as unavailable:
        _skip_without_compiler(unavailable)


def _skip_without_compiler(unavailable: KernelSetUnavailableError) -> NoReturn:
    try:
        find_compiler()
    except KernelSetUnavailableError:
        pytest.skip(str(unavailable))
    pytest.fail(f"there is a compiler, and yet: {unavailable}")
