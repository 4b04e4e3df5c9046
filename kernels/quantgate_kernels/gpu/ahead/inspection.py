"""A case of the catalogue compiled for one architecture, and what its machine code says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import triton

from quantgate_kernels.gpu.ahead.amd_code import facts_of_assembly
from quantgate_kernels.gpu.ahead.catalogue import Case
from quantgate_kernels.gpu.ahead.compile_only import compile_only
from quantgate_kernels.gpu.ahead.facts import KernelFacts, UnreadableCodeError
from quantgate_kernels.gpu.ahead.nvidia_code import facts_of_cubin
from quantgate_kernels.gpu.ahead.published import Roofline, roofline
from quantgate_kernels.gpu.ahead.work import KernelWork, work_of


@dataclass(frozen=True, slots=True)
class Inspected:
    """variant: what Triton compiled, by its hash: two launches with the same one share the machine code."""

    kernel: str
    case: str
    architecture: str
    variant: str
    num_warps: int
    facts: KernelFacts
    work: KernelWork
    roofline: Roofline


@dataclass(frozen=True, slots=True)
class Failed:
    """problem: the first line of what was raised."""

    case: str
    architecture: str
    problem: str


def inspect(case: Case, architecture: str, wanted: Callable[[str], bool]) -> list[Inspected]:
    """Each kernel that the case launches and whose name is wanted, in the order of the launches."""
    try:
        return _inspected(case, architecture, wanted)
    except UnreadableCodeError:
        # Triton takes what lies in its cache as it is, also what a full disk or a crash left there: compile it anew.
        with triton.knobs.compilation.scope():
            triton.knobs.compilation.always_compile = True
            return _inspected(case, architecture, wanted)


def _inspected(case: Case, architecture: str, wanted: Callable[[str], bool]) -> list[Inspected]:
    with compile_only(architecture, wanted) as launches:
        case.launch(architecture)
    inspected = []
    for launch in launches:
        work = work_of(launch.kernel, launch.arguments)
        inspected.append(
            Inspected(
                kernel=launch.kernel,
                case=case.name,
                architecture=architecture,
                variant=launch.compiled.hash,
                num_warps=launch.compiled.metadata.num_warps,
                facts=_facts(launch.compiled),
                work=work,
                roofline=roofline(work, architecture),
            )
        )
    return inspected


_known: dict[str, KernelFacts] = {}
"""By variant: to take machine code apart takes as long as to compile it, and many cases share some."""


def _facts(compiled: Any) -> KernelFacts:
    if compiled.hash not in _known:
        facts_of = facts_of_cubin if compiled.metadata.target.backend == "cuda" else facts_of_assembly
        _known[compiled.hash] = facts_of(compiled)
    return _known[compiled.hash]
