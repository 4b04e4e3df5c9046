"""How often each key may ask."""

from __future__ import annotations

from dataclasses import dataclass

from quantgate_engine.clock import Clock
from quantgate_engine.counted import counted
from quantgate_engine.server.api_error import ApiError


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_ns: int


class RateLimiter:
    """A token bucket for each caller: a minute's worth of requests at once, then as they come back evenly.

    requests_per_minute: None does not limit.
    """

    def __init__(self, requests_per_minute: int | None, clock: Clock) -> None:
        self._capacity = requests_per_minute
        self._clock = clock
        self._buckets: dict[int, _Bucket] = {}

    def take(self, caller: int) -> None:
        """Counts one request; raises ApiError 429, with the seconds until the next is welcome, where it is too many."""
        if self._capacity is None:
            return
        now_ns, per_second = self._clock.now_ns(), self._capacity / 60
        bucket = self._buckets.setdefault(caller, _Bucket(float(self._capacity), now_ns))
        bucket.tokens = min(self._capacity, bucket.tokens + (now_ns - bucket.filled_ns) / 1e9 * per_second)
        bucket.filled_ns = now_ns
        if bucket.tokens < 1:
            raise ApiError(
                429,
                f"This key may ask {counted(self._capacity, 'time')} a minute; wait before the next request.",
                error_type="rate_limit_error",
                code="rate_limit_exceeded",
                retry_after_s=(1 - bucket.tokens) / per_second,
            )
        bucket.tokens -= 1
