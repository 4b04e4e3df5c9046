"""How long requests may take, and the book of who runs out of time when."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from quantgate_engine.request import Request
from quantgate_engine.setting_checks import require_seconds

_FEW = 64


@dataclass(frozen=True, slots=True)
class TimeoutSettings:
    """request_s: seconds from its arrival at which a request is given up (cause: timeout); None: never.

    drain_s: seconds that a shutdown which drains waits for what is running, before it gives it up; None: for ever.
    """

    request_s: float | None = None
    drain_s: float | None = None

    def __post_init__(self) -> None:
        for field in ("request_s", "drain_s"):
            require_seconds(f"TimeoutSettings.{field}", getattr(self, field), optional=True)


class Deadlines:
    """Requests by the time at which they are given up; looking costs nothing while none is due.

    A request that has ended is forgotten at once; its place in the heap goes when the heap has grown to twice what is
    still watched. So a limit of minutes does not keep the prompts of minutes in memory.
    """

    def __init__(self, settings: TimeoutSettings) -> None:
        self._default_s = settings.request_s
        self._watched: dict[int, Request] = {}
        self._due: list[tuple[int, int]] = []

    def watch(self, request: Request) -> None:
        """Takes a request in; its own limit goes before the engine's."""
        timeout_s = request.terms.timeout_s if request.terms.timeout_s is not None else self._default_s
        if timeout_s is not None:
            self._watched[request.rank] = request
            heapq.heappush(self._due, (request.arrived_ns + round(timeout_s * 1e9), request.rank))

    def forget(self, request: Request) -> None:
        """The request has ended."""
        self._watched.pop(request.rank, None)
        if len(self._due) > 2 * len(self._watched) + _FEW:
            self._due = [entry for entry in self._due if entry[1] in self._watched]
            heapq.heapify(self._due)

    def passed(self, now_ns: int) -> list[Request]:
        """Requests whose time is over, each once."""
        over: list[Request] = []
        while self._due and self._due[0][0] <= now_ns:
            request = self._watched.pop(heapq.heappop(self._due)[1], None)
            if request is not None:
                over.append(request)
        return over
