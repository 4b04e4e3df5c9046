"""How far a replay has come."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReplayProgress:
    """`eta_seconds` is None until something is done to estimate it from."""

    arm_id: str
    cells_done: int
    cells_total: int
    requests_done: int
    requests_total: int
    elapsed_seconds: float

    @property
    def eta_seconds(self) -> float | None:
        """Time left if the rest takes as long per request as what is done (cells are alike, they follow one plan)."""
        if self.requests_done == 0:
            return None
        return self.elapsed_seconds * (self.requests_total - self.requests_done) / self.requests_done
