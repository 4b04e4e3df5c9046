"""Facts from AMD's assembly, which names registers and spills itself."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from quantgate_kernels.gpu.ahead.facts import KernelFacts, UnreadableCodeError

_INSTRUCTION = re.compile(r"^\s+([vsdb]\w*_\w+|global_\w+|flat_\w+)\b", re.MULTILINE)
_LOAD = re.compile(r"\b(?:buffer|global)_load_(?:lds_)?(dwordx4|dwordx3|dwordx2|dword|[us]?short|[us]byte)")
_WIDTHS = {"dwordx4": 16, "dwordx3": 12, "dwordx2": 8, "dword": 4, "ushort": 2, "sshort": 2, "short": 2}
_MATRIX = re.compile(r"\bv_mfma\w+")


def facts_of_assembly(compiled: Any) -> KernelFacts:
    """Raises UnreadableCodeError where the assembly does not say what it should."""
    text = compiled.asm["amdgcn"]
    loads: Counter[int] = Counter()
    for kind in _LOAD.findall(text):
        width = _WIDTHS.get(kind, 1)
        loads[width] += width
    return KernelFacts(
        registers=_number(r"\.vgpr_count:\s+(\d+)", text),
        spills=_number(r"\.vgpr_spill_count:\s+(\d+)", text) + _number(r"\.private_segment_fixed_size:\s+(\d+)", text),
        shared_bytes=compiled.metadata.shared,
        load_bytes=dict(loads),
        matrix=tuple(sorted(set(_MATRIX.findall(text)))),
        instructions=len(_INSTRUCTION.findall(text)),
    )


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    if found is None:
        raise UnreadableCodeError(f"no {pattern} in the assembly")
    return int(found[1])
