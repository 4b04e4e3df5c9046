"""POST /quantgate/continuation_logits: whole distributions over HTTP, to the last bit what the engine computes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from starlette.responses import Response

from quantgate_engine.counted import counted
from quantgate_engine.errors import ConfigurationError, RunError
from quantgate_engine.server.api_error import ApiError, bad_request
from quantgate_engine.server.client_watch import unless_client_leaves
from quantgate_engine.server.json_body import JsonBodyRoute
from quantgate_engine.server.prompt_encoding import refuse_long
from quantgate_engine.server.protocol.continuations import ContinuationsRequest
from quantgate_engine.server.service import Service

if TYPE_CHECKING:
    from quantgate_engine.llm import LLM

_FLOAT32_BYTES = 4
MAX_ANSWER_BYTES = 1 << 30
"""An answer stands in memory twice, as tensors and as their bytes."""


def continuations_router(service: Service) -> APIRouter:
    router = APIRouter(route_class=JsonBodyRoute)

    @router.post("/quantgate/continuation_logits")
    async def continuation_logits(body: ContinuationsRequest, request: Request) -> Response:
        """Teacher-forced logits of continuations of one prompt, as safetensors.

        Float32 tensors "0", "1", ... of [len(continuation), vocabulary]; row i is the view of the continuation's token
        i after all before it.
        """
        for param, token_ids in [("prompt_token_ids", body.prompt_token_ids)] + [
            ("continuations", continuation) for continuation in body.continuations
        ]:
            service.check_token_ids(token_ids, param)
        longest = max(map(len, body.continuations))
        refuse_long(
            service,
            len(body.prompt_token_ids) + longest,
            "prompt_token_ids with the longest of continuations",
            "prompt_token_ids",
        )
        rows = sum(map(len, body.continuations))
        if rows * service.llm.vocab_size * _FLOAT32_BYTES > MAX_ANSWER_BYTES:
            raise bad_request(
                f"The continuations have {counted(rows, 'token')}, whose logits are above {MAX_ANSWER_BYTES} bytes; "
                "ask for fewer at a time.",
                "continuations",
            )
        try:
            content = await unless_client_leaves(request.receive, asyncio.to_thread(_computed, service.llm, body))
        except ConfigurationError as refused:
            raise bad_request(str(refused), "prompt_token_ids") from refused
        except RunError as failed:
            raise ApiError(500, str(failed), error_type="server_error") from failed
        return Response(content, media_type="application/octet-stream")

    return router


def _computed(llm: LLM, body: ContinuationsRequest) -> bytes:
    # Here, not at the top: torch takes seconds to import, and `quantgate serve --help` must not.
    from safetensors.torch import save

    from quantgate_engine.executor.compute_thread import on_compute_thread

    logits = llm.continuation_logits(body.prompt_token_ids, body.continuations, body.chunk_tokens)
    content: bytes = on_compute_thread(lambda: save({str(index): tensor for index, tensor in enumerate(logits)}))
    return content
