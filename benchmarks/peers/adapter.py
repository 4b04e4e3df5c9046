"""What an adapter gives: `load(precision, threads, workload, models)` returns an `Engine`.

Standard library only, as the adapters' modules are until `load` is called.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from benchmarks.peers.description import EngineDescription, Widths
from benchmarks.peers.workload import Workload


@dataclass(frozen=True, slots=True)
class SingleAnswer:
    """One request alone. Seconds count from the call; token_times_s only where the engine hands out single tokens."""

    ids: list[int]
    first_token_s: float
    total_s: float
    token_times_s: list[float] | None = None


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """Several requests given at once; `ids` in their order."""

    ids: list[list[int]]
    total_s: float


class Engine(Protocol):
    """Answers greedily, with exactly as many tokens as asked for: the end token is a token like others.

    Of a batch, as many requests are in progress as the workload says that it was loaded for.
    """

    def single(self, ids: list[int], tokens: int) -> SingleAnswer: ...

    def batch(self, prompts: list[list[int]], tokens: int) -> BatchAnswer: ...


class Adapter(Protocol):
    """The module of an adapter. An engine may have `widths`, which then say what it found itself computing in."""

    DESCRIPTION: EngineDescription

    def load(self, precision: str, threads: int, workload: Workload, models: Path) -> Engine: ...


def widths_of(description: EngineDescription, precision: str, engine: Any) -> Widths:
    """Those that the loaded engine tells, else those of its description."""
    found = getattr(engine, "widths", None) or description.precision(precision).widths
    if not isinstance(found, Widths):
        raise TypeError(f"neither the adapter of {description.name} nor its engine tells the widths of {precision}")
    return found
