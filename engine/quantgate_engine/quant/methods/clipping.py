"""Which smaller scales are tried: a few outliers cut off may cost less than a coarser grid for all others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quantgate_engine.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class ClipSearch:
    """The extremes times each of `steps` evenly spaced ratios from below 1 to `least`; the least squared error wins."""

    least: float = 0.5
    steps: int = 20

    def __post_init__(self) -> None:
        if not 0 < self.least < 1 or self.steps < 1:
            raise ConfigurationError(
                f"ClipSearch has least {self.least} and steps {self.steps}; expected a ratio between 0 and 1, "
                "and at least one step."
            )

    def ratios(self) -> Iterator[float]:
        for step in range(1, self.steps + 1):
            yield 1 - (1 - self.least) * step / self.steps
