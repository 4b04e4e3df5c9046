"""Thins the peaks of a trace so far that nowhere more starts than a limit allows."""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from typing import Literal, Self

from pydantic import Field, model_validator
from typing_extensions import override

from quantgate.placed_error import PlacedError
from quantgate.traces.native_row import LONGEST_SECONDS, NANOSECONDS_PER_SECOND
from quantgate.traces.record import TraceRecord
from quantgate.workload.transforms.base import Transform, TransformContext, Transformed
from quantgate.workload.transforms.sessions import group_units, unit_key

MOST_PER_SECOND = 1_000_000


class RateCap(Transform):
    """No window of `window_s` seconds, wherever it lies, starts more than `rate` times `window_s` sessions and single
    requests; later turns are not counted.

    Units are taken up in an order drawn by the seed, each unless a window would hold one too many with it. So nothing
    leaves where the trace is below the limit, and of a peak each unit has the same chance, not the first ones.
    """

    kind: Literal["rate_cap"] = "rate_cap"
    rate: float = Field(
        gt=0, le=MOST_PER_SECOND, allow_inf_nan=False, description="sessions and single requests per second at most"
    )
    window_s: float = Field(
        1.0, gt=0, le=LONGEST_SECONDS, allow_inf_nan=False, description="seconds over which they are counted"
    )

    @model_validator(mode="after")
    def _lets_something_start(self) -> Self:
        if self._most < 1:
            raise PlacedError(
                (
                    ("window_s",),
                    f"a window of {self.window_s:g} s holds less than one start at {self.rate:g} per second; widen it "
                    f"to {1 / self.rate:g} s or more",
                )
            )
        return self

    @property
    def _most(self) -> int:
        """Starts in a window; the addition takes back what 0.1 * 30 loses as a float."""
        return int(self.rate * self.window_s + 1e-9)

    @override
    def apply(self, records: Sequence[TraceRecord], context: TransformContext) -> Transformed:
        window_ns = max(1, round(self.window_s * NANOSECONDS_PER_SECOND))
        starts = {key: unit[0].scheduled_ns for key, unit in group_units(records).items()}
        kept_starts: list[int] = []
        kept_units = set()
        for key in sorted(starts, key=lambda key: _draw(key, context.seed)):
            if _has_room(kept_starts, starts[key], window_ns, self._most):
                insort(kept_starts, starts[key])
                kept_units.add(key)
        kept = [record for record in records if unit_key(record) in kept_units]
        details = {
            "starts": len(starts),
            "starts_kept": len(kept_units),
            "most_in_a_window": _most_in_a_window(starts.values(), window_ns),
            "most_kept_in_a_window": _most_in_a_window(kept_starts, window_ns),
        }
        return Transformed(kept, len(records) - len(kept), details)


def _has_room(kept: Sequence[int], start: int, window_ns: int, most: int) -> bool:
    """Whether no window that holds `start` holds `most` of the kept ones already; `kept` rises.

    With it in its place, `most` + 1 neighbours in order must span a window's length.
    """
    place = bisect_left(kept, start)
    around = [*kept[max(0, place - most) : place], start, *kept[place : place + most]]
    return all(later - earlier >= window_ns for earlier, later in zip(around, around[most:], strict=False))


def _most_in_a_window(starts: Iterable[int], window_ns: int) -> int:
    in_order = sorted(starts)
    most = first = 0
    for place, start in enumerate(in_order):
        while start - in_order[first] >= window_ns:
            first += 1
        most = max(most, place - first + 1)
    return most


def _draw(unit: tuple[str, str], seed: int) -> float:
    return random.Random(f"rate_cap:{seed}:{unit[0]}:{unit[1]}").random()
