"""Margins and required gains as policies write them: `10%`, `2pp`, `15ms`, `0.05nats`, or a plain number."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

_WRITTEN = re.compile(r"\s*(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(?P<suffix>%|pp|ms|nats)?\s*")
_SCALE = {"%": 0.01, "pp": 0.01}
_EXPECTED = {
    "%": "a relative margin such as 10%",
    "pp": "percentage points such as 2pp",
    "ms": "milliseconds such as 15ms",
    "nats": "nats such as 0.05nats",
    "": "a plain number, taken as {unit}",
}


class Margin(NamedTuple):
    """`value` is a fraction for the units `ratio` and `pp` (0.1 = 10 %, 0.02 = 2 points), else in the unit itself."""

    value: float
    unit: str


def parse_margin(written: str | float, units: Mapping[str, str]) -> Margin:
    """`units` maps each suffix that fits the metric to the loss's unit; "" stands for a plain number.

    Raises ValueError with what was expected.
    """
    found = _WRITTEN.fullmatch(str(written))
    suffix = str(found["suffix"] or "") if found else "none"
    if found is None or suffix not in units:
        fitting = " or ".join(_EXPECTED[known].format(unit=units[known]) for known in units)
        raise ValueError(f"expected {fitting}, got {written!r}")
    value = float(found["number"]) * _SCALE.get(suffix, 1.0)
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(
            f"expected a value above 0, got {written!r}; no finite sample can show a loss of exactly nothing"
        )
    if units[suffix] == "pp" and value >= 1:
        raise ValueError(
            f"expected less than 100pp, got {written!r}; no share can fall by more, such a rule could never fail"
        )
    return Margin(value, units[suffix])
