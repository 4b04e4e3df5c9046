"""The production launchers on a machine without a GPU: each launch compiles what it would run, and runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

WARP = 32
WAVEFRONT = 64


def target_of(architecture: str) -> GPUTarget:
    """`sm90` or `gfx942`."""
    if architecture.startswith("sm"):
        return GPUTarget("cuda", int(architecture.removeprefix("sm")), WARP)
    return GPUTarget("hip", architecture, WAVEFRONT)


class CompileOnlyDriver:
    """What Triton asks of a device's driver before it launches."""

    def __init__(self, target: GPUTarget) -> None:
        self._target = target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, _device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return self._target

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def map_python_to_cpp_type(self, type_name: str) -> str:
        return type_name


@dataclass(frozen=True, slots=True)
class Launched:
    """arguments: as the launcher gave them, by the names that the kernel has for them."""

    kernel: str
    arguments: Mapping[str, Any]
    compiled: Any


@contextmanager
def compile_only(architecture: str, wanted: Callable[[str], bool] = lambda _kernel: True) -> Iterator[list[Launched]]:
    """Gives the list that launches inside add to, one each. Tensors may be on `meta`.

    wanted: whether a kernel of that name is compiled at all; those that are not are not in the list.
    """
    launched: list[Launched] = []
    run, active = JITFunction.run, driver._active

    def compile_instead(kernel: Any, *arguments: Any, **named: Any) -> Any:
        name = kernel.fn.__name__
        if not wanted(name):
            return None
        # Triton remembers kernels by the number of the device, not by its architecture.
        kernel.device_caches.clear()
        compiled = run(kernel, *arguments, **{**named, "warmup": True})
        by_name = dict(zip(kernel.arg_names, arguments, strict=False)) | named
        launched.append(Launched(name, by_name, compiled))
        return compiled

    driver.set_active(CompileOnlyDriver(target_of(architecture)))
    JITFunction.run = compile_instead
    try:
        yield launched
    finally:
        JITFunction.run = run
        driver._active = active
