"""Numbers of the gate as an engineer reads them in a sentence."""

from __future__ import annotations

import math
from collections.abc import Callable

_Write = Callable[[float], str]


def _plain(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


_WRITERS: dict[str, _Write] = {
    "ratio": lambda value: f"{100 * value:.1f} %",
    "share": lambda value: f"{100 * value:.1f} %",
    "pp": lambda value: f"{100 * value:.2f} pp",
    "ms": lambda value: f"{_plain(value)} ms",
    "nats": lambda value: f"{_plain(value)} nats",
    "tokens": lambda value: f"{_plain(value)} {'token' if _plain(value) == '1' else 'tokens'}",
    "bytes": lambda value: f"{value / 1e6:,.1f} MB",
}


def write(value: float | None, unit: str) -> str:
    """A value in its unit; shares and ratios are fractions (0.02 is written `2.0 %`, or `2.00 pp`)."""
    if value is None or not math.isfinite(value):
        return "unbounded"
    return _WRITERS[unit](value)


def write_signed(value: float | None, unit: str) -> str:
    """As `write`, with a plus sign for losses above zero."""
    sign = "+" if value is not None and value > 0 and math.isfinite(value) else ""
    return sign + write(value, unit)


def finite(value: float | None) -> float | None:
    """None for what JSON has no number for."""
    return value if value is not None and math.isfinite(value) else None
