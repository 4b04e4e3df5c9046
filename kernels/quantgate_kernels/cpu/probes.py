"""What the machine reads and multiplies at most, as compiled loops that do nothing else find it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from quantgate_kernels.cpu.build import build_library
from quantgate_kernels.cpu.library import COUNT, POINTER, THREADS, load_functions
from quantgate_kernels.roofline import Width

SECONDS = ctypes.POINTER(ctypes.c_double)
MULTIPLY = (COUNT, COUNT, THREADS, SECONDS)
NUMBER_BYTES = 4
OPERATIONS_PER_MULTIPLY_ADD = 2

ROUNDS = 100_000
"""Of a piece of work: some hundred microseconds. Below 2^19, see source/probes/product_peaks.cpp."""

PIECES_PER_THREAD = 8


@dataclass(frozen=True, slots=True)
class Sample:
    """What was done (bytes read, or operations) and how long it took."""

    amount: int
    seconds: float

    @property
    def rate(self) -> float | None:
        """Per second; None where nothing was done."""
        return self.amount / self.seconds if self.amount else None


class Probes:
    """Each call is one sample; the best of several is what the machine can do."""

    def __init__(self) -> None:
        """Raises KernelSetUnavailableError where the C++ can neither be found in the cache nor compiled."""
        # It hands the library torch's team of threads, and tells in one sentence why it cannot be loaded.
        load_functions()
        library = ctypes.CDLL(str(build_library()))
        self._read = _counting(library, "read", (POINTER, COUNT, THREADS, SECONDS))
        self._multiply: dict[Width, Callable[..., int]] = {
            "float32": _counting(library, "float32", MULTIPLY),
            "16-bit": _counting(library, "sixteen_bit", MULTIPLY),
            "int8": _counting(library, "int8", MULTIPLY),
        }

    def read(self, ones: Tensor, threads: int) -> Sample:
        """ones: float32 and contiguous, each number one; larger than the processor's caches, or these are measured."""
        seconds = ctypes.c_double()
        numbers = self._read(ones.data_ptr(), ones.numel(), threads, ctypes.byref(seconds))
        return Sample(numbers * NUMBER_BYTES, seconds.value)

    def multiply(self, width: Width, threads: int, rounds: int = ROUNDS) -> Sample:
        """Operations on numbers of that width, a multiply-add being two; none without an instruction."""
        seconds = ctypes.c_double()
        made = self._multiply[width](rounds, PIECES_PER_THREAD * threads, threads, ctypes.byref(seconds))
        return Sample(made * OPERATIONS_PER_MULTIPLY_ADD, seconds.value)


def _counting(library: ctypes.CDLL, probe: str, argument_types: tuple[type, ...]) -> Callable[..., int]:
    function = library[f"quantgate_probe_{probe}"]
    function.argtypes, function.restype = argument_types, ctypes.c_int64
    return function
