"""Times of a log in nanoseconds, whichever way the log writes them."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from quantgate.traces.openai_log.columns import DurationUnit, TimeUnit
from quantgate.traces.timestamps import timestamp_to_ns

NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_LARGEST = 2**63

# Numbers of these sizes are times after March 1973 in one unit only, up to the year 5138.
_SMALLEST_SINCE_1970: tuple[tuple[int, DurationUnit], ...] = (
    (10**17, "ns"),
    (10**14, "us"),
    (10**11, "ms"),
    (10**8, "s"),
)


class LogClock:
    """Reads the times of one log. With unit `auto` the first number fixes the unit of all numbers."""

    def __init__(self, unit: TimeUnit) -> None:
        self._unit = unit

    def to_ns(self, value: Any) -> int:
        """Nanoseconds since 1970 or the log's start. Raises ValueError that says what was expected."""
        number = number_of(value) if self._unit != "iso" else None
        if number is None:
            return self._date(value)
        if self._unit == "auto":
            self._unit = _unit_since_1970(number)
        return _nanoseconds(number, self._unit)

    def _date(self, value: Any) -> int:
        if isinstance(value, str) and self._unit in {"auto", "iso"}:
            try:
                return _nanoseconds(Decimal(timestamp_to_ns(value.strip())), "ns")
            except ValueError:
                pass
        expected = {
            "auto": "a time such as 2026-01-31T12:00:00.5Z, or a number of seconds, ms, us or ns since 1970",
            "iso": "a time such as 2026-01-31T12:00:00.5Z",
        }.get(self._unit, f"a number in {self._unit}, as the rows before it or the column map say")
        raise ValueError(f"expected {expected}")


def duration_ns(value: Any, unit: DurationUnit) -> int:
    """Nanoseconds of a duration. Raises ValueError for what is no number of at least 0."""
    number = number_of(value)
    if number is None:
        raise ValueError(f"expected a duration of at least 0 {unit}")
    return _nanoseconds(number, unit)


def number_of(value: Any) -> Decimal | None:
    """The number, exactly as it is written, also where it is written as text; None for what is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _unit_since_1970(number: Decimal) -> DurationUnit:
    for smallest, unit in _SMALLEST_SINCE_1970:
        if number >= smallest:
            return unit
    raise ValueError(
        "expected a time since 1970; a number this small counts from somewhere else, so say its unit in a column map, "
        "--columns FILE (time: {unit: ms})"
    )


def _nanoseconds(number: Decimal, unit: str) -> int:
    # Compared before it is multiplied: 1e999999 is a Decimal, and its product with anything above 1 is none.
    if not 0 <= number < Decimal(_LARGEST) / NANOSECONDS[unit]:
        raise ValueError("expected a time from 1970 to 2262")
    return round(number * NANOSECONDS[unit])
