"""Where kernels run: a GPU, or no memory at all, where launches only compile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar

import torch
from torch import Tensor

from quantgate_kernels.gpu.device import Device, find_device

H100_PROCESSORS = 132
"""Taken for the processors of a GPU that is not there."""


class Fields(Protocol):
    """A dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


Operand = TypeVar("Operand", bound=Fields)


@dataclass(frozen=True, slots=True)
class Place:
    """dry: tensors are on `meta`, and launches compile for the architecture and compute nothing."""

    torch_device: torch.device
    kernel_device: Device
    dry: bool

    @property
    def architecture(self) -> str:
        return self.kernel_device.architecture

    @property
    def processors(self) -> int:
        return self.kernel_device.processors

    def put(self, operand: Operand) -> Operand:
        """A batch, a cache or a weight with all its tensors there, those of a weight inside it too."""
        named = {field.name: getattr(operand, field.name) for field in fields(operand)}
        moved: dict[str, Any] = {}
        for name, part in named.items():
            if isinstance(part, Tensor):
                moved[name] = part.to(self.torch_device)
            elif is_dataclass(part) and not isinstance(part, type):
                moved[name] = self.put(part)
        return replace(operand, **moved)


def gpu() -> Place:
    """Raises KernelSetUnavailableError where there is none for the kernels."""
    found = find_device()
    return Place(torch.device("cuda", torch.cuda.current_device()), found, dry=False)


def nowhere(architecture: str) -> Place:
    return Place(torch.device("meta"), Device(architecture, H100_PROCESSORS), dry=True)


@contextmanager
def launching(place: Place) -> Iterator[list[str]]:
    """Gives the list of kernels that were compiled inside: filled when it is left, and only where `place` is dry."""
    names: list[str] = []
    if not place.dry:
        yield names
        return
    with _compile_only(place.architecture) as compiled:
        yield names
    names += [f"{launched.kernel}:{launched.compiled.hash[:12]}" for launched in compiled]


def _compile_only(architecture: str) -> AbstractContextManager[list[Any]]:
    # Here: it reaches into Triton, which a GPU's run has no need of.
    from quantgate_kernels.gpu.ahead.compile_only import compile_only

    return compile_only(architecture)
