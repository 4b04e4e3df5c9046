"""The production launchers on a machine without a GPU: each launch compiles what it would run, and runs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def compile_only(architecture: str) -> Iterator[list[Any]]:
    """Gives the list of compiled kernels that launches inside add to, one a launch. Tensors may be on `meta`."""
    compiled: list[Any] = []
    run, active = JITFunction.run, driver._active

    def compile_instead(kernel: Any, *arguments: Any, **named: Any) -> Any:
        # Triton remembers kernels by the number of the device, not by its architecture.
        kernel.device_caches.clear()
        compiled.append(run(kernel, *arguments, **{**named, "warmup": True}))
        return compiled[-1]

    driver.set_active(CompileOnlyDriver(target_of(architecture)))
    JITFunction.run = compile_instead
    try:
        yield compiled
    finally:
        JITFunction.run = run
        driver._active = active
