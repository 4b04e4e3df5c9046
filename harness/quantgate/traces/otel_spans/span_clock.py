"""Times of spans in nanoseconds."""

from __future__ import annotations

import re
from typing import Any

from quantgate.traces.openai_log.times import LogClock, number_of

_ZONE = re.compile(r"(?:Z|[+-]\d{2}:\d{2})\s*\Z")


class SpanClock:
    """Reads the times of one file, of which either all dates have a zone or none has: UTC would be a guess for some."""

    def __init__(self) -> None:
        self._nanoseconds = LogClock("ns")
        self._numbers = LogClock("auto")
        self._dates = LogClock("iso")
        self._zoned: bool | None = None

    def to_ns(self, field: str, value: Any) -> int:
        """Raises ValueError, which begins with the field."""
        try:
            if field.lower().endswith("nano"):
                return self._nanoseconds.to_ns(value)
            if not isinstance(value, str) or number_of(value) is not None:
                return self._numbers.to_ns(value)
            time_ns = self._dates.to_ns(value)
            zoned = _ZONE.search(value) is not None
            self._zoned = zoned if self._zoned is None else self._zoned
            if zoned != self._zoned:
                with_or_without = "with" if self._zoned else "without"
                raise ValueError(f"expected a time {with_or_without} a zone, as the times before it are written")
        except ValueError as error:
            raise ValueError(f"field {field}: {error}, got {value!r:.40}") from None
        return time_ns
