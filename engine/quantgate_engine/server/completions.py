"""POST /v1/completions"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from quantgate_engine.server.choices import Choice, make_choices
from quantgate_engine.server.client_watch import unless_client_leaves
from quantgate_engine.server.event_stream import EventStream
from quantgate_engine.server.front_door import TICKET
from quantgate_engine.server.generation import Answer, Piece, generate
from quantgate_engine.server.logprob_shapes import LogprobShapes
from quantgate_engine.server.merge import merged
from quantgate_engine.server.prompt_scoring import ScoredPrompt, score_prompts
from quantgate_engine.server.protocol.completions import CompletionRequest
from quantgate_engine.server.service import Service
from quantgate_engine.server.usage import usage


def completions_router(service: Service) -> APIRouter:
    router = APIRouter()

    @router.post("/v1/completions")
    async def create_completion(body: CompletionRequest, request: Request) -> Response:
        """Continues each prompt, `n` times; as server-sent events where `stream` is set."""
        service.check_model(body.model)
        return await unless_client_leaves(request.receive, _respond(service, body, request))

    return router


async def _respond(service: Service, body: CompletionRequest, request: Request) -> Response:
    getattr(request.state, TICKET).widen(len(body.prompts) * body.n - 1)
    prompts = [
        await service.encode(prompt, "prompt", add_special_tokens=body.add_special_tokens) for prompt in body.prompts
    ]
    answer_id = service.next_id("cmpl")
    choices = make_choices(
        service, body, prompts, answer_id=answer_id, max_tokens=body.requested_tokens, logprobs=body.logprobs
    )
    scored = await score_prompts(service, prompts, _alternatives(body))
    completion = _Completion(service, body, answer_id, choices, scored)
    if body.stream:
        return EventStream(completion.events(), service.settings.request_timeout_s)
    return JSONResponse(await completion.whole())


def _alternatives(body: CompletionRequest) -> int | None:
    """How many likeliest tokens the prompt's scores need; None where nobody asks for scores."""
    asked = [body.prompt_logprobs, body.logprobs if body.echo else None]
    return max((count for count in asked if count is not None), default=None)


class _Completion:
    """One request's answer, whole or in events."""

    def __init__(
        self,
        service: Service,
        body: CompletionRequest,
        answer_id: str,
        choices: list[Choice],
        prompts: list[ScoredPrompt],
    ) -> None:
        self._service = service
        self._body = body
        self._choices = choices
        self._prompts = prompts
        self._shapes = LogprobShapes(service.token_pieces, as_ids=body.return_tokens_as_token_ids)
        self._head = {
            "id": answer_id,
            "object": "text_completion",
            "created": service.now_s(),
            "model": service.settings.served_name,
            "system_fingerprint": service.fingerprint,
        }

    async def whole(self) -> dict[str, Any]:
        answers = [Answer() for _ in self._choices]
        async with aclosing(self._pieces()) as pieces:
            async for piece in pieces:
                answers[piece.index].add(piece)
        choices = [self._choice(index, answer) | self._about_prompt(index) for index, answer in enumerate(answers)]
        return self._head | {"choices": choices, "usage": self._usage(sum(len(each.token_ids) for each in answers))}

    async def events(self) -> AsyncGenerator[dict[str, Any], None]:
        body, num_tokens, opened = self._body, 0, set[int]()
        no_usage = {"usage": None} if body.stream_options.include_usage else {}
        async with aclosing(self._pieces()) as pieces:
            async for piece in pieces:
                num_tokens += len(piece.token_ids)
                if not (piece.text or piece.finish_reason or piece.logprobs or body.return_token_ids):
                    continue
                choice = self._choice(piece.index, piece)
                if piece.index not in opened:
                    opened.add(piece.index)
                    choice |= self._about_prompt(piece.index)
                yield self._head | {"choices": [choice]} | no_usage
        if body.stream_options.include_usage:
            yield self._head | {"choices": [], "usage": self._usage(num_tokens)}

    def _pieces(self) -> AsyncGenerator[Piece, None]:
        return merged([self._with_echo(choice) for choice in self._choices])

    async def _with_echo(self, choice: Choice) -> AsyncGenerator[Piece, None]:
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
        async with aclosing(generate(self._service, choice, offset)) as pieces:
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
        return choice | {"token_ids": list(answer.token_ids)} if self._body.return_token_ids else choice

    def _about_prompt(self, index: int) -> dict[str, Any]:
        prompt, about = self._prompt_of(index), dict[str, Any]()
        if self._body.return_token_ids:
            about["prompt_token_ids"] = list(prompt.token_ids)
        if self._body.prompt_logprobs is not None:
            about["prompt_logprobs"] = self._shapes.prompt(prompt.scores, self._body.prompt_logprobs)
        return about

    def _prompt_of(self, index: int) -> ScoredPrompt:
        return self._prompts[index // self._body.n]

    def _usage(self, output_tokens: int) -> dict[str, Any]:
        return usage((prompt.token_ids for prompt in self._prompts), output_tokens)
