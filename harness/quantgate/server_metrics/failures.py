"""Scrapes of one arm that failed."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate_engine.counted import counted

_FOR_GOOD = frozenset({401, 403, 404, 405, 501})
"""Statuses that the next scrape would be answered with too."""


@dataclass(slots=True)
class Failures:
    """Counts them; the first tells why. are_final: the server does not give its metrics, asking again is no use."""

    count: int = 0
    first: str = ""
    are_final: bool = False

    def add(self, why: str, status: int | None) -> None:
        self.count += 1
        self.first = self.first or why
        self.are_final = self.are_final or status in _FOR_GOOD

    @property
    def sentence(self) -> str:
        if self.are_final:
            return f"The server's metrics were not read: {self.first}."
        return f"{counted(self.count, 'look')} at the server's metrics failed, the first with: {self.first}."
