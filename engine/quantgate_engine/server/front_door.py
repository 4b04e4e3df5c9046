"""What every request passes before a route sees it: key, body, room, and rate, in this order."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from quantgate_engine.server.api_error import ApiError
from quantgate_engine.server.body_limit import BodyReader, with_body
from quantgate_engine.server.client_watch import ClientLeftError
from quantgate_engine.server.gate import Gate, Ticket
from quantgate_engine.server.keys import ApiKeys
from quantgate_engine.server.metrics import ServiceMetrics
from quantgate_engine.server.rate_limit import RateLimiter

OPEN_PATHS = frozenset({"/health", "/metrics"})
"""Probes and scrapers come without a key; no request's content is to be seen there."""

TICKET = "ticket"
"""Where a route finds its request's ticket, in the request's state."""


class FrontDoor:
    """ASGI middleware. Requests that make work (POST) hold a ticket from their body's last byte to their answer's.

    A connection whose body does not come takes nobody's place: it is counted when there is a request.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        keys: ApiKeys,
        rates: RateLimiter,
        gate: Gate,
        metrics: ServiceMetrics,
        bodies: BodyReader,
    ) -> None:
        self._app = app
        self._keys = keys
        self._rates = rates
        self._gate = gate
        self._metrics = metrics
        self._bodies = bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        try:
            headers = Headers(scope=scope)
            caller = self._keys.caller(headers.get("authorization"))
            if scope["method"] == "POST":
                # Who is to be sent away need not send the body first.
                self._gate.check_room()
                body = await self._bodies.read(receive, headers.get("content-length"))
                ticket = self._enter(caller)
        except ApiError as refusal:
            self._metrics.count_refusal(refusal)
            await refusal.response()(scope, receive, send)
            return
        except ClientLeftError:
            return
        if scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        try:
            scope.setdefault("state", {})[TICKET] = ticket
            await self._app(scope, with_body(body, receive), send)
        finally:
            ticket.leave()

    def _enter(self, caller: int) -> Ticket:
        ticket = self._gate.enter()
        try:
            self._rates.take(caller)
        except ApiError:
            ticket.leave()
            raise
        return ticket
