"""The compiled kernels as functions: loaded once per process, argument types prepared."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

from quantgate_kernels.cpu.build import build_library
from quantgate_kernels.types import dtype_name
from quantgate_kernels.unavailable import KernelSetUnavailableError

POINTER, COUNT, NUMBER, THREADS = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float, ctypes.c_int

SIGNATURES: dict[str, tuple[type, ...]] = {
    "rms_norm": (*(POINTER,) * 3, NUMBER, *(POINTER,) * 2, *(COUNT,) * 2, THREADS),
    "rope_and_write_kv": (*(POINTER,) * 9, *(COUNT,) * 4, THREADS),
    "attention": (*(POINTER,) * 9, *(COUNT,) * 7, NUMBER, THREADS),
    "silu_and_mul": (*(POINTER,) * 2, *(COUNT,) * 2, THREADS),
    "fixed_order_dense": (*(POINTER,) * 3, *(COUNT,) * 3, THREADS),
    "fixed_order_logits": (*(POINTER,) * 3, *(COUNT,) * 3, THREADS),
    "fixed_order_int8": (*(POINTER,) * 4, *(COUNT,) * 3, THREADS),
    "fixed_order_int8_groups": (*(POINTER,) * 5, ctypes.c_int, *(COUNT,) * 4, THREADS),
    "fixed_order_int4": (*(POINTER,) * 5, ctypes.c_int, *(COUNT,) * 4, THREADS),
}
"""As declared at the end of each source file."""

PANEL_LINEAR = (*(ctypes.c_int32,) * 2, *(POINTER,) * 7, ctypes.c_int, *(COUNT,) * 4, THREADS)
STEP_BYTES = (POINTER, COUNT, THREADS)
DECODER_STEP = (*(POINTER,) * 4, THREADS)
STEP_TOKENS_BYTES = (*(POINTER,) * 3, THREADS)
STEP_TOKENS = (*(POINTER,) * 5, THREADS)
HEAD_BYTES = (POINTER, COUNT, THREADS)
HEAD = (*(POINTER,) * 2, COUNT, *(POINTER,) * 3, THREADS)


@dataclass(frozen=True, slots=True)
class StepFunctions:
    """The step program's parts: bytes that each works in, and the parts themselves."""

    step_bytes: Callable[..., int]
    decoder_step: Callable[..., None]
    step_tokens_bytes: Callable[..., int]
    step_tokens: Callable[..., None]
    head_bytes: Callable[..., int]
    head: Callable[..., None]


@dataclass(frozen=True, slots=True)
class Functions:
    """The kernels for one activation dtype; those of 16 bits alone are None for others."""

    rms_norm: Callable[..., None]
    rope_and_write_kv: Callable[..., None]
    attention: Callable[..., None]
    silu_and_mul: Callable[..., None]
    fixed_order_dense: Callable[..., None]
    fixed_order_logits: Callable[..., None]
    fixed_order_int8: Callable[..., None]
    fixed_order_int8_groups: Callable[..., None]
    fixed_order_int4: Callable[..., None]
    panel_linear: Callable[..., None] | None = None
    step: StepFunctions | None = None


@cache
def load_functions() -> dict[torch.dtype, Functions]:
    """Builds where the cache lacks them. Raises KernelSetUnavailableError where that or loading fails."""
    return bind(build_library())


def bind(path: Path) -> dict[torch.dtype, Functions]:
    """The functions of a built library, for each activation dtype."""
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise KernelSetUnavailableError(f"the compiled kernels cannot be loaded ({error})") from error
    library.quantgate_use_team.argtypes = (POINTER, POINTER)
    library.quantgate_use_team.restype = None
    library.quantgate_use_team(*_team_of_torch())
    panel_linear = _function(library, "quantgate_panel_linear", PANEL_LINEAR)
    step = StepFunctions(
        step_bytes=_function(library, "quantgate_step_bytes", STEP_BYTES, COUNT),
        decoder_step=_function(library, "quantgate_decoder_step", DECODER_STEP),
        step_tokens_bytes=_function(library, "quantgate_step_tokens_bytes", STEP_TOKENS_BYTES, COUNT),
        step_tokens=_function(library, "quantgate_step_tokens", STEP_TOKENS),
        head_bytes=_function(library, "quantgate_head_bytes", HEAD_BYTES, COUNT),
        head=_function(library, "quantgate_head", HEAD),
    )
    return {
        torch.bfloat16: Functions(**_of_both_dtypes(library, torch.bfloat16), panel_linear=panel_linear, step=step),
        torch.float32: Functions(**_of_both_dtypes(library, torch.float32)),
    }


def _of_both_dtypes(library: ctypes.CDLL, dtype: torch.dtype) -> dict[str, Any]:
    return {
        operation: _function(library, f"quantgate_{operation}_{dtype_name(dtype)}", argument_types)
        for operation, argument_types in SIGNATURES.items()
    }


def _function(
    library: ctypes.CDLL, name: str, argument_types: tuple[type, ...], result: type | None = None
) -> Callable[..., Any]:
    function = library[name]
    function.argtypes, function.restype = argument_types, result
    return function


def _team_of_torch() -> tuple[int | None, int | None]:
    """The addresses by which torch's own OpenMP runtime starts a team of threads, and tells a member the team's size.

    None for both where it has none. A name that is looked up in torch's extension module is found in the libraries that
    it has loaded.
    """
    try:
        runtime = ctypes.CDLL(torch._C.__file__)
        start, size = runtime.GOMP_parallel, runtime.omp_get_num_threads
    except (AttributeError, OSError):
        return None, None
    return ctypes.cast(start, ctypes.c_void_p).value, ctypes.cast(size, ctypes.c_void_p).value
