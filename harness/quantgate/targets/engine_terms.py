"""What the bundled engine is told of a planned request beside its tokens."""

from __future__ import annotations

from collections.abc import Sequence

from quantgate.workload.plan import PlannedRequest
from quantgate_engine.request_terms import RequestTerms


class EngineTerms:
    """Makes the terms of each request of a replay.

    slo_classes: the engine's, the most urgent first. A trace may name others, because policies judge by class and not
    every class needs lanes of its own: such a request is scheduled as one that names none, in the first class, and
    `notes` says so. timeout_s: how long a client waits for its answer.

    Arms take turns, and an arm and its A/A twin share an engine, which is emptied between them. The salt and the
    sessions of each turn are its own, so that nothing is found of what a turn's last requests leave as they go, and
    records of who held the cache tell turns apart.
    """

    def __init__(self, slo_classes: Sequence[str], timeout_s: float | None = None) -> None:
        self._slo_classes = tuple(slo_classes)
        self._timeout_s = timeout_s
        self._turn = 0
        self._unknown: set[str] = set()

    def begin_turn(self) -> None:
        """Requests from now on share neither prefixes nor sessions with those before."""
        self._turn += 1

    def of(self, request: PlannedRequest) -> RequestTerms:
        known = request.slo_class in self._slo_classes
        if not known:
            self._unknown.add(request.slo_class)
        return RequestTerms(
            slo_class=request.slo_class if known else None,
            timeout_s=self._timeout_s,
            session_id=None if request.session_id is None else f"{request.session_id}@{self._turn}",
            cache_salt=f"turn {self._turn}",
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence where requests were not scheduled in the class that the trace names."""
        if not self._unknown:
            return ()
        return (
            f"scheduled as {self._slo_classes[0]}, because the engine has no such SLO class: "
            f"{', '.join(sorted(self._unknown))}",
        )
