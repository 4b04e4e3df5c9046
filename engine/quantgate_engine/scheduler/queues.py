"""One queue per live state, so that a request's state and its queue cannot disagree."""

from __future__ import annotations

from itertools import chain

from quantgate_engine.request import Request, RequestState
from quantgate_engine.scheduler.waiting import WaitingRequests


class RequestQueues:
    """The requests of each live state; adding, moving and leaving are O(1)."""

    def __init__(self, waiting: WaitingRequests) -> None:
        self.waiting = waiting
        self._active: dict[RequestState, dict[str, Request]] = {RequestState.PREFILL: {}, RequestState.DECODING: {}}

    def add(self, request: Request) -> None:
        """Takes in a new request, which waits."""
        self.waiting.add(request)

    def move(self, request: Request, target: RequestState) -> None:
        """Takes the transition, and the request to the end of the target's queue (a final state has none)."""
        origin = request.state
        request.transition(target)
        if origin is RequestState.WAITING:
            self.waiting.remove(request)
        else:
            del self._active[origin][request.request_id]
        if target in self._active:
            self._active[target][request.request_id] = request

    def give_way(self, request: Request) -> None:
        """Sends an active request back to wait, at its old rank."""
        self.move(request, RequestState.WAITING)
        request.preemptions += 1
        self.waiting.add(request)

    def in_state(self, state: RequestState) -> tuple[Request, ...]:
        """A snapshot of an active state, so that requests may move while it is read."""
        return tuple(self._active[state].values())

    def active(self) -> list[Request]:
        """Requests that hold a promise of KV."""
        return list(chain.from_iterable([queue.values() for queue in self._active.values()]))

    def count(self, state: RequestState) -> int:
        return len(self.waiting) if state is RequestState.WAITING else len(self._active[state])

    @property
    def num_active(self) -> int:
        return self.count(RequestState.PREFILL) + self.count(RequestState.DECODING)
