"""Facts from a cubin, by the disassemblers that Triton brings with it."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import triton

from quantgate_kernels.gpu.ahead.facts import KernelFacts, UnreadableCodeError

_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:\{\s*)?(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)")
_GLOBAL_LOAD = re.compile(r"LDG(STS)?\b")
_SPILL = re.compile(r"(STL|LDL)\b")
_MATRIX = re.compile(r"(HMMA|IMMA|HGMMA|IGMMA|UTC\w*MMA)")
_WIDTHS = ((r"\.128\b", 16), (r"\.64\b", 8), (r"\.[US]16\b", 2), (r"\.[US]8\b", 1))
_UNMARKED_WIDTH = 4


def facts_of_cubin(compiled: Any) -> KernelFacts:
    """Raises UnreadableCodeError where the disassembler does not know the architecture, or the code is damaged."""
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "kernel.cubin"
        cubin.write_bytes(compiled.asm["cubin"])
        usage = _output(triton.knobs.nvidia.cuobjdump.path, "-res-usage", cubin)
        code = _output(triton.knobs.nvidia.nvdisasm.path, "-c", cubin)
    operations = _INSTRUCTION.findall(code)
    registers = re.search(r"REG:(\d+)", usage)
    if not operations or registers is None:
        raise UnreadableCodeError(
            f"the disassembler of Triton {triton.__version__} cannot read {compiled.metadata.target}"
        )
    loads: Counter[int] = Counter()
    for operation in filter(_GLOBAL_LOAD.match, operations):
        loads[_width(operation)] += _width(operation)
    return KernelFacts(
        registers=int(registers[1]),
        spills=sum(1 for operation in operations if _SPILL.match(operation)),
        shared_bytes=compiled.metadata.shared,
        load_bytes=dict(loads),
        matrix=tuple(sorted({operation for operation in operations if _MATRIX.match(operation)})),
        instructions=len(operations),
    )


def _output(*command: object) -> str:
    finished = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        words = " ".join(finished.stderr.split())
        raise UnreadableCodeError(f"{Path(str(command[0])).name} cannot read the machine code ({words})")
    return finished.stdout


def _width(operation: str) -> int:
    return next((width for mark, width in _WIDTHS if re.search(mark, operation)), _UNMARKED_WIDTH)
