"""What the driver saw of one request."""

from __future__ import annotations

from dataclasses import dataclass, field

from quantgate.targets.base import RequestEnd
from quantgate.workload.plan import PlannedRequest


@dataclass(slots=True)
class RequestObservation:
    """Times are nanoseconds of the driver's clock; one entry of `token_times_ns` per token."""

    request: PlannedRequest
    scheduled_ns: int
    sent_ns: int
    token_ids: list[int] = field(default_factory=list)
    token_times_ns: list[int] = field(default_factory=list)
    ended_ns: int = 0
    end: RequestEnd = field(default_factory=lambda: RequestEnd("failed", error="the target ended without saying how"))

    def add_tokens(self, token_ids: tuple[int, ...], now_ns: int) -> None:
        self.token_ids.extend(token_ids)
        self.token_times_ns.extend([now_ns] * len(token_ids))
