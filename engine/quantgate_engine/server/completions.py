"""POST /v1/completions"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from quantgate_engine.server.answering import Answering, answer_request
from quantgate_engine.server.choices import Choice, make_choices
from quantgate_engine.server.generation import Answer, Piece, generate
from quantgate_engine.server.json_body import JsonBodyRoute
from quantgate_engine.server.prompt_encoding import encode_prompts
from quantgate_engine.server.prompt_scoring import ScoredPrompt, score_prompts
from quantgate_engine.server.protocol.completions import CompletionRequest
from quantgate_engine.server.service import Service


def completions_router(service: Service) -> APIRouter:
    router = APIRouter(route_class=JsonBodyRoute)

    @router.post("/v1/completions")
    async def create_completion(body: CompletionRequest, request: Request) -> Response:
        """Continues each prompt, `n` times; as server-sent events where `stream` is set."""
        return await answer_request(service, body, request, num_prompts=len(body.prompts), prepare=_prepare)

    return router


async def _prepare(service: Service, body: CompletionRequest) -> _Completion:
    prompts = await encode_prompts(service, body.prompts, add_special_tokens=body.add_special_tokens)
    answer_id = service.next_id("cmpl")
    choices = make_choices(
        service, body, prompts, answer_id=answer_id, max_tokens=body.requested_tokens, logprobs=body.logprobs
    )
    return _Completion(service, body, answer_id, choices, await score_prompts(service, prompts, _alternatives(body)))


def _alternatives(body: CompletionRequest) -> int | None:
    """How many likeliest tokens the prompt's scores need; None where nobody asks for scores."""
    asked = [body.prompt_logprobs, body.logprobs if body.echo else None]
    return max((count for count in asked if count is not None), default=None)


class _Completion(Answering[CompletionRequest]):
    whole_object = event_object = "text_completion"

    def whole_choice(self, index: int, answer: Answer) -> dict[str, Any]:
        return self._choice(index, answer) | self.about_prompt(self._prompt_of(index))

    def event_choice(self, piece: Piece, *, opens: bool) -> dict[str, Any]:
        about = self.about_prompt(self._prompt_of(piece.index)) if opens else {}
        return self._choice(piece.index, piece) | about

    async def pieces_of(self, choice: Choice) -> AsyncGenerator[Piece, None]:
        """The prompt too, where the request wants it echoed."""
        offset = 0
        if self._body.echo:
            prompt = self._prompt_of(choice.index)
            text = prompt.text(self._service.tokenizer)
            offset = len(text)
            echo = Piece(choice.index, text=text)
            if self._body.logprobs is not None:
                tokens = prompt.as_sampled(self._body.logprobs)
                echo = replace(echo, logprobs=tokens, offsets=prompt.offsets(self._service.token_pieces))
            yield echo
        async with aclosing(generate(self._service, choice, self._usage, offset)) as pieces:
            async for piece in pieces:
                yield piece

    def _choice(self, index: int, answer: Answer | Piece) -> dict[str, Any]:
        wanted = self._body.logprobs is not None
        choice = {
            "index": index,
            "text": answer.text,
            "logprobs": self._shapes.completions(answer.logprobs, answer.offsets) if wanted else None,
            "finish_reason": answer.finish_reason,
        }
        return self.with_extras(choice, answer)

    def _prompt_of(self, index: int) -> ScoredPrompt:
        return self._prompts[index // self._body.n]
