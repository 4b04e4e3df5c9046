"""One look at a server's metrics, in our names and units."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from quantgate.server_metrics.exposition import Sample, read_samples
from quantgate.server_metrics.metric import OTHER, SERVER_METRICS
from quantgate.server_metrics.servers.registry import recognise
from quantgate.server_metrics.servers.server_names import ServerNames, TheirName

OTHER_LIMIT = 60
"""Series kept of a server that we have no table for: enough to look something up, too few to swell the results."""

_OF_THE_RUNTIME = ("python_", "process_", "go_")


@dataclass(frozen=True, slots=True)
class Reading:
    """metric: our name, with `_sum` or `_count` where ours is a histogram. labels: JSON, keys in order.

    grows: the value is a running total, of which only differences say something about a phase.
    """

    metric: str
    server_name: str
    labels: str
    value: float
    grows: bool

    @property
    def series(self) -> tuple[str, str, str]:
        return self.metric, self.server_name, self.labels


def read_scrape(text: str) -> list[Reading]:
    """Raises ExpositionError."""
    samples = read_samples(text)
    server = recognise(sample.name for sample in samples)
    return list(_others(samples)) if server is None else list(_known(samples, server))


def _known(samples: list[Sample], server: ServerNames) -> Iterator[Reading]:
    found: set[str] = set()
    for theirs in server.names:
        readings = list(_readings(samples, theirs))
        if readings and theirs.ours not in found:
            found.add(theirs.ours)
            yield from readings


def _readings(samples: list[Sample], theirs: TheirName) -> Iterator[Reading]:
    ours = SERVER_METRICS[theirs.ours]
    # The sum is in the unit of the values; the count of them is in no unit.
    scales = {"_sum": theirs.scale, "_count": 1.0} if ours.kind == "histogram" else {"": theirs.scale}
    for suffix, scale in scales.items():
        for sample in samples:
            if sample.name == theirs.name + suffix and theirs.labels.items() <= sample.labels.items():
                yield Reading(
                    metric=ours.name + suffix,
                    server_name=sample.name,
                    labels=_as_json(sample.labels),
                    value=sample.value * scale,
                    grows=ours.kind != "gauge",
                )


def _others(samples: list[Sample]) -> Iterator[Reading]:
    named = [sample for sample in samples if not sample.name.startswith(_OF_THE_RUNTIME)]
    ordered = sorted(named, key=lambda sample: (sample.name, _as_json(sample.labels)))
    for sample in ordered[:OTHER_LIMIT]:
        yield Reading(OTHER, sample.name, _as_json(sample.labels), sample.value, sample.only_grows)


def _as_json(labels: Mapping[str, str]) -> str:
    return json.dumps(dict(labels), sort_keys=True)
