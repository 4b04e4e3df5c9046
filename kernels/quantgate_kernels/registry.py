"""Which kernel sets there are, and which a device gets. A set is made per executor: it records the paths it took."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

from quantgate_kernels.cpu.deterministic import DeterministicCpuKernels
from quantgate_kernels.cpu.kernels import CpuKernels
from quantgate_kernels.gpu.device import find_device, interpreted
from quantgate_kernels.kernel_set import KernelSet
from quantgate_kernels.kernel_set_names import AUTO, KernelSetName
from quantgate_kernels.reference.deterministic import DeterministicReferenceKernels
from quantgate_kernels.reference.kernels import ReferenceKernels
from quantgate_kernels.unavailable import KernelSetUnavailableError

TRITON: KernelSetName = "triton"


def _triton() -> KernelSet:
    find_device()
    with _imports_told():
        # Not before: Triton need not be installed, and takes a second to import.
        from quantgate_kernels.gpu.kernels import TritonKernels

    return TritonKernels()


def _deterministic_triton() -> KernelSet:
    find_device()
    with _imports_told():
        from quantgate_kernels.gpu.kernels import DeterministicTritonKernels

    return DeterministicTritonKernels()


@contextmanager
def _imports_told() -> Iterator[None]:
    """A Triton that is installed and cannot be read leaves `auto` the other sets, as one that is missing does."""
    try:
        yield
    except (ImportError, OSError) as broken:
        raise KernelSetUnavailableError(f"Triton cannot be imported ({broken}); install it anew") from broken


KERNEL_SETS: dict[str, Callable[[], KernelSet]] = {
    ReferenceKernels.name: ReferenceKernels,
    CpuKernels.name: CpuKernels,
    TRITON: _triton,
}

DETERMINISTIC_SETS: dict[str, Callable[[], KernelSet]] = {
    ReferenceKernels.name: DeterministicReferenceKernels,
    CpuKernels.name: DeterministicCpuKernels,
    TRITON: _deterministic_triton,
}
"""By the name of a set, its variant whose rows depend on nothing but themselves and their context."""

FASTER_SETS: dict[str, tuple[str, ...]] = {"cpu": (CpuKernels.name,), "cuda": (TRITON,)}
"""By type of device, the sets that run there beside `reference`, which runs everywhere, the fastest first."""


def make_kernel_set(name: str = AUTO, device: str = "cpu", deterministic: bool = False) -> KernelSet:
    """The set of that name; `auto` takes the fastest that runs on this type of device. Or its deterministic variant.

    Raises KeyError, with the known names, for an unknown one, and KernelSetUnavailableError where a set that was asked
    for by name cannot run here, or a deterministic variant is asked for and there is none.
    """
    if name == AUTO:
        name = _fastest(device)
    if name not in KERNEL_SETS:
        raise KeyError(f"unknown kernel set {name!r}; known: {AUTO}, {', '.join(sorted(KERNEL_SETS))}")
    if not _runs_on(name, device):
        raise KernelSetUnavailableError(f"they do not run on the device {device}; choose {AUTO}")
    makers = DETERMINISTIC_SETS if deterministic else KERNEL_SETS
    if name not in makers:
        with_variants = ", ".join(sorted(DETERMINISTIC_SETS))
        raise KernelSetUnavailableError(f"`{name}` has no deterministic variant; choose one that has ({with_variants})")
    return makers[name]()


def _runs_on(name: str, device: str) -> bool:
    return name == ReferenceKernels.name or name in FASTER_SETS.get(device, ()) or (name == TRITON and interpreted())


@cache
def _fastest(device: str) -> str:
    """Decided once per process, so that all arms get the same set and a failure is told once."""
    for name in FASTER_SETS.get(device, ()):
        try:
            KERNEL_SETS[name]()
        except KernelSetUnavailableError as unavailable:
            logging.getLogger(__name__).warning(
                "The `%s` kernels are not used: %s. The slower `%s` kernels run instead.",
                name, unavailable, ReferenceKernels.name,
            )  # fmt: skip
        else:
            return name
    return ReferenceKernels.name
