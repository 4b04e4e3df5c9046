"""How many tokens each answer has: lognormal, one median and width per kind of traffic.

Azure's conversations have p50/p95/p99 of 129/451/601 output tokens, that is a log-width of ln(451/129)/1.645 = 0.76.
The medians are scaled down by about eight, so that a small model on two cores serves an arm in a minute.
"""

from __future__ import annotations

from dataclasses import dataclass

from quantgate.workload.sample_drawing.draft import Kind
from quantgate.workload.sample_drawing.seeded_draws import SeededDraws

SHORTEST = 3
LONGEST = 96


@dataclass(frozen=True, slots=True)
class LengthShape:
    median: float
    sigma: float


SHAPES: dict[Kind, LengthShape] = {
    "chat": LengthShape(16.0, 0.76),
    "rag": LengthShape(14.0, 0.60),
    "code": LengthShape(22.0, 0.70),
    "tools": LengthShape(15.0, 0.45),
}


def output_lengths(kind: Kind, count: int, draws: SeededDraws) -> list[int]:
    """`count` lengths in tokens, in random order."""
    shape = SHAPES[kind]
    values = draws.stratified_lognormal(count, shape.median, shape.sigma)
    return [min(LONGEST, max(SHORTEST, round(value))) for value in values]
