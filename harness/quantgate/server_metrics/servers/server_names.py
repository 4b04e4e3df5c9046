"""What one kind of server calls our metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TheirName:
    """One of our metrics by the name that a server exports it under.

    name: without `_total`, which client libraries treat unlike; where ours is a histogram, without `_sum` and `_count`.
    scale: what their values are multiplied by to be in our unit. labels: only samples that have these.
    """

    ours: str
    name: str
    scale: float = 1.0
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServerNames:
    """prefix: what the names of this server begin with, and of no other. names: of several for one of our metrics, the
    first that a scrape holds counts (servers rename over the years)."""

    server: str
    prefix: str
    names: tuple[TheirName, ...]


SECONDS_TO_MS = 1000.0
