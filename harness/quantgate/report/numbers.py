"""Numbers as a reader wants them: three significant digits, a unit, an interval where there is one."""

from __future__ import annotations

import math
from collections.abc import Callable

from quantgate.report.estimates import Estimate

NOTHING = "–"
_SPACE = "\u00a0"
"""Between a number and its unit, so that no line breaks there."""


def significant(value: float | None, digits: int = 3) -> str:
    """`1,234`, `12.3`, `0.0123`: about `digits` significant digits, never an exponent for everyday sizes."""
    if value is None or math.isnan(value):
        return NOTHING
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    if magnitude < -6:
        return f"{value:.{digits - 1}e}"
    decimals = max(0, digits - 1 - magnitude)
    return f"{value:,.{decimals}f}"


def milliseconds(value: float | None) -> str:
    """In milliseconds, from ten seconds on in seconds."""
    if value is not None and 10_000 <= abs(value) < math.inf:
        return seconds(value / 1000)
    return NOTHING if value is None else f"{significant(value)}{_SPACE}ms"


def seconds(value: float | None) -> str:
    return NOTHING if value is None else f"{significant(value)}{_SPACE}s"


def size(count: float | None) -> str:
    """Bytes in decimal units."""
    if count is None:
        return NOTHING
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(count) >= factor:
            return f"{significant(count / factor)}{_SPACE}{unit}"
    return f"{count:.0f}{_SPACE}B"


def percent(share: float | None) -> str:
    return NOTHING if share is None or math.isnan(share) else f"{significant(share * 100)}{_SPACE}%"


def signed_percent(share: float | None) -> str:
    if share is None or math.isnan(share):
        return NOTHING
    return f"{'+' if share > 0 else ''}{percent(share)}"


def count(number: int) -> str:
    return f"{number:,}"


_BY_UNIT: dict[str, Callable[[float | None], str]] = {
    "ms": milliseconds,
    "s": seconds,
    "bytes": size,
    "ratio": percent,
    "share": percent,
    "relative": percent,
    "%": percent,
    "pp": lambda value: NOTHING if value is None else f"{significant(value * 100)}{_SPACE}pp",
}


def in_unit(value: float | None, unit: str) -> str:
    """`value` written in `unit`; a unit without a rule of its own is simply written after the number."""
    if value is None or math.isnan(value):
        return NOTHING
    write = _BY_UNIT.get(unit)
    return write(value) if write else f"{significant(value)}{_SPACE}{unit}" if unit else significant(value)


def with_interval(estimate: Estimate | None, write: Callable[[float | None], str]) -> str:
    """`12.3 ms [11.9 to 12.8 ms]`; a dash where there is no number, no brackets where there is no interval."""
    if estimate is None:
        return NOTHING
    if estimate.low is None or estimate.high is None:
        return write(estimate.value)
    return f"{write(estimate.value)} {limits(estimate.low, estimate.high, write)}"


def limits(low: float | None, high: float | None, write: Callable[[float | None], str]) -> str:
    """`[11.9 to 12.8 ms]`; a limit of None is unbounded, and the unit is written once where both share it."""
    low_text = "-∞" if low is None else write(low)
    high_text = "∞" if high is None else write(high)
    number, _, unit = low_text.partition(_SPACE)
    shared = bool(unit) and high_text.endswith(_SPACE + unit)
    return f"[{number if shared else low_text} to {high_text}]"
