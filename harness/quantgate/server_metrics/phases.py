"""The scrapes of one cell as rows: values of the moment as they are, running totals as what they grew by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from quantgate.server_metrics.scrape import Reading

Phase = Literal["before", "during", "after"]


@dataclass(frozen=True, slots=True)
class Scrape:
    """`time_ns`: from the run's start, when the answer had come."""

    phase: Phase
    time_ns: int
    readings: Sequence[Reading]


def rows_of_cell(arm_id: str, scrapes: Sequence[Scrape]) -> Iterator[dict[str, Any]]:
    """Rows of the table `server_metrics`, in order of time.

    A running total has no row in the cell's first scrape; in each later one its row holds the growth since the scrape
    before, so that the rows of a phase, of a cell and of an arm add up. A total that fell was started
    again from nought: all of its value has grown since (as `increase` in Prometheus has it).
    """
    last: dict[tuple[str, str, str], float] = {}
    for index, scrape in enumerate(scrapes):
        for reading in scrape.readings:
            value = reading.value
            if reading.grows:
                # A series that appears only now (its first event came) has grown from nought.
                before = last.get(reading.series, 0.0)
                last[reading.series] = value
                if index == 0:
                    continue
                value = value if value < before else value - before
            yield {
                "arm_id": arm_id,
                "phase": scrape.phase,
                "time_ns": scrape.time_ns,
                "metric": reading.metric,
                "server_name": reading.server_name,
                "labels": reading.labels,
                "value": value,
            }
