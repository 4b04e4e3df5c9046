"""Who holds blocks of the KV cache, how many and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class KVHolding:
    """One holder: a running request, a session between two turns, or a request that was swapped out to the host."""

    holder: str
    kind: Literal["request", "session", "swapped"]
    blocks: int
    held_seconds: float
