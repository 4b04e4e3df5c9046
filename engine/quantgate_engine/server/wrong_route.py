"""Requests that meet no route: which were meant, and what is to be done."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from quantgate_engine.server.api_error import ApiError


class LenientRoutes:
    """ASGI middleware: HEAD is answered as GET (the HTTP server sends no body then), and /path/ as /path."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            method = "GET" if scope["method"] == "HEAD" else scope["method"]
            scope = {**scope, "method": method, "path": scope["path"].rstrip("/") or "/"}
        await self._app(scope, receive, send)


def wrong_route(request: Request, app: FastAPI, error: HTTPException) -> ApiError:
    """The error with a sentence: 404 names the routes that there are, 405 the methods that the path takes."""
    asked = f"{request.method} {quote(request.scope['path'])}"
    headers = dict(error.headers or {})
    if error.status_code == 404:
        routes = ", ".join(app.openapi()["paths"])
        return ApiError(404, f"{asked} is no route of this server; expected one of {routes}.", code="no_such_route")
    if error.status_code == 405:
        allowed = headers.get("Allow", "")
        if "GET" in allowed and "HEAD" not in allowed:
            headers["Allow"] = f"{allowed}, HEAD"
        return ApiError(
            405, f"{asked} is not possible; this path takes {allowed}.", code="method_not_supported", headers=headers
        )
    return ApiError(error.status_code, str(error.detail), headers=headers)
