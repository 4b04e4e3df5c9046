"""What machine code says of a kernel before anything has run it."""

from __future__ import annotations

from dataclasses import dataclass


class UnreadableCodeError(ValueError):
    """Machine code that its disassembler, or this package, cannot make out."""


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """registers: of a thread. spills: instructions that move them to memory and back, or registers so moved on AMD.
    load_bytes: by the width of a global load in bytes, what all loads of that width move for one thread, each counted
    once as it stands in the code. matrix: the matrix instructions by name. instructions: of all kinds.
    """

    registers: int
    spills: int
    shared_bytes: int
    load_bytes: dict[int, int]
    matrix: tuple[str, ...]
    instructions: int

    @property
    def wide_share(self) -> float:
        """Of the bytes that are loaded, those by 16 bytes at a time, the most that a thread can."""
        return self.load_bytes.get(16, 0) / max(1, sum(self.load_bytes.values()))
