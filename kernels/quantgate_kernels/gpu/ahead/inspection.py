"""A case of the catalogue compiled for one architecture, and what its machine code says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quantgate_kernels.gpu.ahead.amd_code import facts_of_assembly
from quantgate_kernels.gpu.ahead.catalogue import Case
from quantgate_kernels.gpu.ahead.compile_only import compile_only
from quantgate_kernels.gpu.ahead.facts import KernelFacts
from quantgate_kernels.gpu.ahead.nvidia_code import facts_of_cubin


@dataclass(frozen=True, slots=True)
class Inspected:
    """variant: what Triton compiled, by its hash: two launches with the same one share the machine code."""

    kernel: str
    case: str
    architecture: str
    variant: str
    num_warps: int
    facts: KernelFacts


def inspect(case: Case, architecture: str) -> list[Inspected]:
    """Each kernel that the case launches, in the order of the launches."""
    with compile_only(architecture) as compiled:
        case.launch(architecture)
    return [
        Inspected(
            kernel=kernel.metadata.name,
            case=case.name,
            architecture=architecture,
            variant=kernel.hash,
            num_warps=kernel.metadata.num_warps,
            facts=_facts(kernel),
        )
        for kernel in compiled
    ]


_known: dict[str, KernelFacts] = {}
"""By variant: to take machine code apart takes as long as to compile it, and many cases share some."""


def _facts(compiled: Any) -> KernelFacts:
    if compiled.hash not in _known:
        facts_of = facts_of_cubin if compiled.metadata.target.backend == "cuda" else facts_of_assembly
        _known[compiled.hash] = facts_of(compiled)
    return _known[compiled.hash]
