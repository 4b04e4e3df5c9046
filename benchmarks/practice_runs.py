"""Measures setups: each is replayed once a repeat, on whichever executor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from benchmarks.practice_figures import Figures, figures_of, medians
from benchmarks.practice_setups import Setup

from quantgate.progress import ProgressReporter
from quantgate.replay.replay_log import CellResult

ReplaySetup = Callable[[Setup], CellResult]


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures of each setup, one entry a repeat."""

    figures: Mapping[Setup, list[Figures]]

    def repeats(self, setup: Setup) -> list[Figures]:
        return self.figures[setup]

    def median(self, setup: Setup) -> Figures:
        """Figure by figure the median over the repeats."""
        return medians(self.figures[setup])


def measure(setups: Iterable[Setup], replay: ReplaySetup, repeats: int, progress: ProgressReporter) -> Measured:
    """Replays each setup `repeats` times; equal setups are one.

    Every second repeat goes through the setups backwards, so that a drift of the machine touches all of them alike.
    """
    distinct = list(dict.fromkeys(setups))
    figures: dict[Setup, list[Figures]] = {setup: [] for setup in distinct}
    with progress.phase("replay", repeats * len(distinct)) as advance:
        for repeat in range(repeats):
            for setup in distinct if repeat % 2 == 0 else reversed(distinct):
                figures[setup].append(figures_of(replay(setup)))
                advance(sum(map(len, figures.values())), "")
    return Measured(figures)
