"""The application: routes behind the front door, and every error in OpenAI's shape."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from quantgate_engine.llm import LLM
from quantgate_engine.server.api_error import ApiError
from quantgate_engine.server.body_limit import BodyReader
from quantgate_engine.server.chat import chat_router
from quantgate_engine.server.client_watch import ClientLeftError
from quantgate_engine.server.completions import completions_router
from quantgate_engine.server.continuations import continuations_router
from quantgate_engine.server.front_door import FrontDoor
from quantgate_engine.server.invalid_body import invalid_body
from quantgate_engine.server.keys import ApiKeys
from quantgate_engine.server.rate_limit import RateLimiter
from quantgate_engine.server.routes import health_router, model_router, text_router
from quantgate_engine.server.service import Service
from quantgate_engine.server.settings import ServerSettings
from quantgate_engine.server.wrong_route import LenientRoutes, wrong_route
from quantgate_engine.stepped_engine import SteppedEngine

CLIENT_LEFT = 499
"""The status that nobody reads: nginx's word for a client that closed its connection."""


def create_app(
    llm: LLM,
    settings: ServerSettings,
    epoch_seconds: Callable[[], float] = time.time,
    core: SteppedEngine | None = None,
) -> FastAPI:
    """The ASGI application over a loaded model. Its engine runs from start-up to shut-down.

    epoch_seconds: the date that answers carry. core: what serves requests with the model, where that is more than
    its own engine (pools behind a router). `app.state.service` is the Service behind it.
    """
    service = Service(llm, settings, epoch_seconds, core)

    @asynccontextmanager
    async def engine_runs(_app: FastAPI) -> AsyncIterator[None]:
        await service.engine.start()
        try:
            yield
        finally:
            await service.engine.stop()

    # The interactive pages load scripts from elsewhere; the description itself stays.
    app = FastAPI(title="quantgate serve", lifespan=engine_runs, docs_url=None, redoc_url=None)
    app.state.service = service
    app.add_middleware(
        FrontDoor,
        keys=ApiKeys(settings.api_keys),
        rates=RateLimiter(settings.requests_per_minute, llm.core.clock),
        gate=service.gate,
        metrics=service.metrics,
        bodies=BodyReader(
            settings.max_body_bytes, settings.body_patience_s, service.gate.capacity * settings.max_body_bytes
        ),
    )
    # Outermost, so that the front door sees the path that is meant.
    app.add_middleware(LenientRoutes)
    for router in (completions_router, chat_router, model_router, text_router, continuations_router, health_router):
        app.include_router(router(service))
    _answer_errors(app, service)
    return app


def _answer_errors(app: FastAPI, service: Service) -> None:
    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        own = error if isinstance(error, ApiError) else wrong_route(request, app, error)
        service.metrics.count_refusal(own)
        return own.response()

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return invalid_body(error, request.headers.get("content-type")).response()

    @app.exception_handler(ClientLeftError)
    async def client_left(_request: Request, _error: ClientLeftError) -> Response:
        return Response(status_code=CLIENT_LEFT)

    @app.exception_handler(Exception)
    async def failed(_request: Request, error: Exception) -> Response:
        message = f"Unexpected {type(error).__name__}: {error}. This is a fault of quantgate; report it."
        return ApiError(500, message, error_type="server_error").response()
