"""What every request passes before a route sees it: key, size of the body, room, and rate, in this order."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from quantgate_engine.server.api_error import ApiError
from quantgate_engine.server.body_limit import limited, refuse_declared
from quantgate_engine.server.gate import Gate, Ticket
from quantgate_engine.server.keys import ApiKeys
from quantgate_engine.server.metrics import ServiceMetrics
from quantgate_engine.server.rate_limit import RateLimiter

OPEN_PATHS = frozenset({"/health", "/metrics"})
"""Probes and scrapers come without a key; no request's content is to be seen there."""

TICKET = "ticket"
"""Where a route finds its request's ticket, in the request's state."""


class FrontDoor:
    """ASGI middleware. Requests that make work (POST) hold a ticket until their last byte is sent."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        keys: ApiKeys,
        rates: RateLimiter,
        gate: Gate,
        metrics: ServiceMetrics,
        max_body_bytes: int,
        body_patience_s: float,
    ) -> None:
        self._app = app
        self._keys = keys
        self._rates = rates
        self._gate = gate
        self._metrics = metrics
        self._max_body_bytes = max_body_bytes
        self._body_patience_s = body_patience_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            ticket = self._ticket(scope)
        except ApiError as refusal:
            self._metrics.count_refusal(refusal)
            await refusal.response()(scope, receive, send)
            return
        try:
            scope.setdefault("state", {})[TICKET] = ticket
            await self._app(scope, limited(receive, self._max_body_bytes, self._body_patience_s), send)
        finally:
            if ticket is not None:
                ticket.leave()

    def _ticket(self, scope: Scope) -> Ticket | None:
        headers = Headers(scope=scope)
        if scope["path"] in OPEN_PATHS:
            return None
        caller = self._keys.caller(headers.get("authorization"))
        if scope["method"] != "POST":
            return None
        refuse_declared(headers.get("content-length"), self._max_body_bytes)
        ticket = self._gate.enter()
        try:
            self._rates.take(caller)
        except ApiError:
            ticket.leave()
            raise
        return ticket
