"""What one step did to the rows of a workload: reading a log, redacting it, sampling it, clipping it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class TransformRecord:
    """One step and how many rows it touched, for the fidelity certificate.

    parameters: its settings, and what it counted (plain JSON values). rows_touched: incoming rows that it changed or
    removed.
    """

    name: str
    parameters: dict[str, Any] = field(hash=False)
    rows_in: int
    rows_out: int
    rows_touched: int
