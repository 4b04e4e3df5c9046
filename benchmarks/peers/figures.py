"""Medians, spreads and ratios of what was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.peers.rounds import ArmResult, Turn


@dataclass(frozen=True, slots=True)
class Figure:
    """Something that every arm has once per round. lower_is_better: for times."""

    name: str
    title: str
    read: Callable[[Turn], float]
    lower_is_better: bool = False


TTFT = Figure("ttft_ms", "first token, ms", lambda turn: turn.ttft_ms, lower_is_better=True)
DECODE = Figure("decode_tok_s", "decode, tok/s", lambda turn: turn.decode_tok_s)
BATCH = Figure("batch_output_tok_s", "batch, output tok/s", lambda turn: turn.batch_output_tok_s)
FIGURES = (TTFT, DECODE, BATCH)


@dataclass(frozen=True, slots=True)
class Summary:
    """Of the rounds; `spread` is (highest - lowest) / median."""

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
    return summary([figure.read(turn) for turn in result.turns])


def fastest(results: Sequence[ArmResult], figure: Figure) -> ArmResult | None:
    """By median, of those that ran all rounds."""
    ran = [result for result in results if result.ran]
    if not ran:
        return None
    best = min if figure.lower_is_better else max
    return best(ran, key=lambda result: summary_of(result, figure).median)


@dataclass(frozen=True, slots=True)
class Ratio:
    """ours / theirs. value: of the medians; lowest and highest: of single rounds."""

    value: float
    lowest: float
    highest: float


def ratio(ours: ArmResult, theirs: ArmResult, figure: Figure) -> Ratio:
    rounds = [figure.read(a) / figure.read(b) for a, b in zip(ours.turns, theirs.turns, strict=True)]
    value = summary_of(ours, figure).median / summary_of(theirs, figure).median
    return Ratio(value, min(rounds), max(rounds))
