"""Medians, spreads and ratios of what was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.peers.rounds import ArmResult


@dataclass(frozen=True, slots=True)
class Figure:
    """What is measured of every arm, again and again. values: in order of time. lower_is_better: for times."""

    name: str
    title: str
    values: Callable[[ArmResult], list[float]]
    lower_is_better: bool = False


TTFT = Figure(
    "ttft_ms", "first token, ms", lambda result: [turn.ttft_ms for turn in result.singles], lower_is_better=True
)
DECODE = Figure("decode_tok_s", "decode, tok/s", lambda result: [turn.decode_tok_s for turn in result.singles])
BATCH = Figure(
    "batch_output_tok_s", "batch, output tok/s", lambda result: [turn.output_tok_s for turn in result.batches]
)
FIGURES = (TTFT, DECODE, BATCH)


@dataclass(frozen=True, slots=True)
class Summary:
    """Of all laps or rounds; `spread` is (highest - lowest) / median."""

    median: float
    lowest: float
    highest: float
    values: tuple[float, ...]

    @property
    def spread(self) -> float:
        return (self.highest - self.lowest) / self.median


def summary(values: Sequence[float]) -> Summary:
    """Raises ValueError where there are none."""
    if not values:
        raise ValueError("there is nothing to summarise")
    return Summary(median(values), min(values), max(values), tuple(values))


def summary_of(result: ArmResult, figure: Figure) -> Summary:
    return summary(figure.values(result))


def fastest(results: Sequence[ArmResult], figure: Figure) -> ArmResult | None:
    """By median, of those that ran all rounds."""
    ran = [result for result in results if result.ran]
    if not ran:
        return None
    best = min if figure.lower_is_better else max
    return best(ran, key=lambda result: summary_of(result, figure).median)


@dataclass(frozen=True, slots=True)
class Ratio:
    """ours / theirs of single laps or rounds. value: their median.

    Not the ratio of medians: where a machine's memory has two speeds, one engine's median may fall into the one and
    another's into the other.
    """

    value: float
    lowest: float
    highest: float


def ratio(ours: ArmResult, theirs: ArmResult, figure: Figure) -> Ratio:
    ratios = summary([a / b for a, b in zip(figure.values(ours), figure.values(theirs), strict=True)])
    return Ratio(ratios.median, ratios.lowest, ratios.highest)
