"""Timestamps of traces, exact to the nanosecond (datetime stops at microseconds and would lose Azure's last digit)."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_PATTERN = re.compile(
    r"(?P<date>\d{4}-\d{2}-\d{2})[ T](?P<time>\d{2}:\d{2}:\d{2})"
    r"(?:\.(?P<fraction>\d{1,9})\d*)?(?P<zone>Z|[+-]\d{2}:\d{2})?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def timestamp_to_ns(text: str) -> int:
    """Nanoseconds since 1970-01-01 UTC of `2023-11-16 18:17:03.9799600` or `2024-05-12 00:00:00+00:00`.

    A timestamp without zone is taken as UTC; digits below a nanosecond, which some loggers write, are left out.
    Raises ValueError for anything else.
    """
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise ValueError(f"not a timestamp: {text!r}")
    zone = match["zone"] or "+00:00"
    whole = datetime.fromisoformat(f"{match['date']}T{match['time']}{'+00:00' if zone == 'Z' else zone}")
    since_epoch = whole - _EPOCH
    seconds = since_epoch.days * 86_400 + since_epoch.seconds
    return seconds * 1_000_000_000 + int((match["fraction"] or "").ljust(9, "0"))
