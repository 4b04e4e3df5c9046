"""One queue per live state, so that a request's state and its queue cannot disagree."""

from __future__ import annotations

from collections.abc import Iterable

from quantgate_engine.request import Request, RequestState


class RequestQueues:
    """Requests in order of arrival within each live state; adding, moving and leaving are O(1)."""

    def __init__(self) -> None:
        self._queues: dict[RequestState, dict[str, Request]] = {
            RequestState.WAITING: {},
            RequestState.PREFILL: {},
            RequestState.DECODING: {},
        }

    def add(self, request: Request) -> None:
        self._queues[request.state][request.request_id] = request

    def move(self, request: Request, target: RequestState) -> None:
        """Takes the transition, and the request to the end of the target's queue (a final state has none)."""
        origin = request.state
        request.transition(target)
        del self._queues[origin][request.request_id]
        if target in self._queues:
            self._queues[target][request.request_id] = request

    def in_state(self, state: RequestState) -> Iterable[Request]:
        """A snapshot, so that requests may move while it is read."""
        return tuple(self._queues[state].values())

    def count(self, state: RequestState) -> int:
        return len(self._queues[state])

    @property
    def num_active(self) -> int:
        """Requests that hold a promise of KV."""
        return self.count(RequestState.PREFILL) + self.count(RequestState.DECODING)
