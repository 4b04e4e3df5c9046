"""The small routes: what is served, how it is, and text to tokens and back."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from typing import Any

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import JSONResponse, Response

from quantgate_engine.pool_state import PoolState
from quantgate_engine.server.api_error import unavailable
from quantgate_engine.server.json_body import JsonBodyRoute
from quantgate_engine.server.prompt_encoding import apply_template
from quantgate_engine.server.protocol.text import DetokenizeRequest, TokenizeRequest
from quantgate_engine.server.service import Service


def model_router(service: Service) -> APIRouter:
    """GET /v1/models and /v1/models/NAME; `quantgate` tells what was loaded, for those who compare arms."""
    router = APIRouter()

    def entry() -> dict[str, Any]:
        info = service.llm.info
        loaded = {field.name: getattr(info, field.name) for field in fields(info)}
        del loaded["name"], loaded["provenance"]
        # A copy at once: the engine adds to it as operations run.
        loaded["kernel_paths"] = dict(info.kernel_paths)
        return {
            "id": service.settings.served_name,
            "object": "model",
            "created": service.started_s,
            "owned_by": "quantgate",
            "root": info.name,
            "max_model_len": service.engine.max_sequence_tokens,
            "quantgate": loaded
            | {
                "max_context_tokens": service.engine.max_sequence_tokens,
                "slo_classes": service.engine.slo_classes,
                "pools": [_pool_entry(name, pool) for name, pool in service.engine.pool_states.items()],
            },
        }

    @router.get("/v1/models")
    async def list_models() -> dict[str, Any]:
        return {"object": "list", "data": [entry()]}

    @router.get("/v1/models/{name:path}")
    async def show_model(name: str) -> dict[str, Any]:
        service.check_model(name)
        return entry()

    return router


def _pool_entry(name: str, pool: PoolState) -> dict[str, Any]:
    return {
        "name": name,
        "takes": pool.takes,
        "slo_classes": pool.slo_classes,
        "max_model_len": pool.max_sequence_tokens,
        "max_active_requests": pool.max_active_requests,
        "block_size": pool.block_size,
        "num_kv_blocks": pool.num_kv_blocks,
    }


def health_router(service: Service) -> APIRouter:
    """GET /health (503 while the server drains or its engine is broken) and GET /metrics."""
    router = APIRouter()

    @router.get("/health")
    async def health() -> JSONResponse:
        if service.gate.draining:
            raise unavailable("The server is shutting down.", "shutting_down")
        if service.engine.failure is not None:
            raise unavailable(f"The engine takes no requests: {service.engine.failure}.", "engine_failed")
        return JSONResponse({"status": "ok"})

    @router.get("/metrics")
    async def metrics() -> Response:
        return Response(service.metrics.exposition(), media_type=CONTENT_TYPE_LATEST)

    return router


def text_router(service: Service) -> APIRouter:
    """POST /tokenize and /detokenize."""
    router = APIRouter(route_class=JsonBodyRoute)

    @router.post("/tokenize")
    async def tokenize(body: TokenizeRequest) -> Response:
        service.check_model(body.model)
        if body.messages is not None:
            messages = [message.for_template() for message in body.messages]
            tokens = await apply_template(service, messages, body.chat_template_kwargs)
        else:
            tokens = await service.encode(body.prompt or "", "prompt", add_special_tokens=body.add_special_tokens)
        answer = {"tokens": tokens, "count": len(tokens), "max_model_len": service.engine.max_sequence_tokens}
        # Millions of tokens take a while to write.
        return await asyncio.to_thread(JSONResponse, answer)

    @router.post("/detokenize")
    async def detokenize(body: DetokenizeRequest) -> dict[str, Any]:
        service.check_model(body.model)
        service.check_token_ids(body.tokens, "tokens")
        text = await asyncio.to_thread(service.tokenizer.decode, body.tokens, skip_special_tokens=False)
        return {"prompt": str(text)}

    return router
