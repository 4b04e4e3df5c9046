"""Values of aiperf with the unit that stands beside each: the unit decides, not the metric's name."""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

from quantgate.foreign_results.result_format import Count, ForeignModel, Measured

TimeUnit = Literal["ns", "us", "ms", "sec", "s"]
_MILLISECONDS: dict[str, float] = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "sec": 1e3, "s": 1e3}

TTFT = "first response with content - start of the request"
TPOT = "(end - first response) / (output tokens - 1), per request; aiperf calls it inter token latency"
ITL = "gaps between chunks, pooled over requests"
E2E = "last response - start of the request"
RATES = {
    "requests_per_s": "valid requests / (last response - first request)",
    "output_tokens_per_s": "output and reasoning tokens of valid requests / (last response - first request)",
    "goodput_rps": "requests within the limits of --goodput / (last response - first request)",
}

_Value = TypeVar("_Value")


class TimeValue(ForeignModel, Generic[_Value]):
    """One time, or a list of times, of one request."""

    value: _Value
    unit: TimeUnit

    @property
    def to_milliseconds(self) -> float:
        """Factor from this unit to milliseconds."""
        return _MILLISECONDS[self.unit]


class TimeSummary(ForeignModel):
    """Statistics of one time over all requests."""

    unit: TimeUnit
    avg: Measured | None = None
    p50: Measured | None = None
    p95: Measured | None = None
    p99: Measured | None = None
    count: Count | None = None

    def milliseconds(self, value: float | None) -> float | None:
        return None if value is None else value * _MILLISECONDS[self.unit]
