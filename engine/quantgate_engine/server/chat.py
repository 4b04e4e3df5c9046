"""POST /v1/chat/completions"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from quantgate_engine.server.choices import Choice, make_choices
from quantgate_engine.server.client_watch import unless_client_leaves
from quantgate_engine.server.event_stream import EventStream
from quantgate_engine.server.front_door import TICKET
from quantgate_engine.server.generation import Answer, Piece, generate_all
from quantgate_engine.server.logprob_shapes import LogprobShapes
from quantgate_engine.server.prompt_scoring import ScoredPrompt, score_prompts
from quantgate_engine.server.protocol.chat import ChatCompletionRequest
from quantgate_engine.server.service import Service
from quantgate_engine.server.usage import usage


def chat_router(service: Service) -> APIRouter:
    router = APIRouter()

    @router.post("/v1/chat/completions")
    async def create_chat_completion(body: ChatCompletionRequest, request: Request) -> Response:
        """Answers a chat, `n` times; as server-sent events where `stream` is set."""
        service.check_model(body.model)
        return await unless_client_leaves(request.receive, _respond(service, body, request))

    return router


async def _respond(service: Service, body: ChatCompletionRequest, request: Request) -> Response:
    getattr(request.state, TICKET).widen(body.n - 1)
    messages = [message.for_template() for message in body.messages]
    prompt = await service.encode(messages, "messages", template_arguments=body.chat_template_kwargs)
    answer_id = service.next_id("chatcmpl")
    choices = make_choices(
        service,
        body,
        [prompt],
        answer_id=answer_id,
        max_tokens=body.requested_tokens or _room_for_answer(service, len(prompt)),
        logprobs=body.top_logprobs if body.logprobs else None,
    )
    [scored] = await score_prompts(service, [prompt], body.prompt_logprobs)
    chat = _Chat(service, body, answer_id, choices, scored)
    if body.stream:
        return EventStream(chat.events(), service.settings.request_timeout_s)
    return JSONResponse(await chat.whole())


def _room_for_answer(service: Service, prompt_tokens: int) -> int:
    """The server's default limit, or what the context leaves; at least 1: a prompt too long is refused elsewhere."""
    return max(1, min(service.settings.default_max_tokens, service.llm.max_context_tokens - prompt_tokens))


class _Chat:
    """One request's answer, whole or in events."""

    def __init__(
        self,
        service: Service,
        body: ChatCompletionRequest,
        answer_id: str,
        choices: list[Choice],
        prompt: ScoredPrompt,
    ) -> None:
        self._service = service
        self._body = body
        self._choices = choices
        self._prompt = prompt
        self._shapes = LogprobShapes(service.token_pieces, as_ids=body.return_tokens_as_token_ids)
        self._head = {
            "id": answer_id,
            "created": service.now_s(),
            "model": service.settings.served_name,
            "system_fingerprint": service.fingerprint,
        }

    async def whole(self) -> dict[str, Any]:
        answers = [Answer() for _ in self._choices]
        async with aclosing(generate_all(self._service, self._choices)) as pieces:
            async for piece in pieces:
                answers[piece.index].add(piece)
        choices = [
            self._choice(index, answer, {"message": {"role": "assistant", "content": answer.text, "refusal": None}})
            for index, answer in enumerate(answers)
        ]
        used = self._usage(sum(len(each.token_ids) for each in answers))
        head = self._head | {"object": "chat.completion"}
        return head | {"choices": choices, "usage": used} | self._about_prompt()

    async def events(self) -> AsyncGenerator[dict[str, Any], None]:
        body, num_tokens, opened = self._body, 0, set[int]()
        head = self._head | {"object": "chat.completion.chunk"}
        no_usage = {"usage": None} if body.stream_options.include_usage else {}
        about_prompt = self._about_prompt()
        async with aclosing(generate_all(self._service, self._choices)) as pieces:
            async for piece in pieces:
                num_tokens += len(piece.token_ids)
                if not (piece.text or piece.finish_reason or piece.logprobs or body.return_token_ids):
                    continue
                # The role comes with the first text: an event of its own would look like a first token.
                role = {} if piece.index in opened else {"role": "assistant"}
                opened.add(piece.index)
                choice = self._choice(piece.index, piece, {"delta": role | {"content": piece.text}})
                yield head | {"choices": [choice]} | no_usage | about_prompt
                about_prompt = {}
        if body.stream_options.include_usage:
            yield head | {"choices": [], "usage": self._usage(num_tokens)}

    def _choice(self, index: int, answer: Answer | Piece, content: dict[str, Any]) -> dict[str, Any]:
        choice = (
            {"index": index}
            | content
            | {
                "logprobs": self._shapes.chat(answer.logprobs) if self._body.logprobs else None,
                "finish_reason": answer.finish_reason,
            }
        )
        return choice | {"token_ids": list(answer.token_ids)} if self._body.return_token_ids else choice

    def _about_prompt(self) -> dict[str, Any]:
        about = dict[str, Any]()
        if self._body.return_token_ids:
            about["prompt_token_ids"] = list(self._prompt.token_ids)
        if self._body.prompt_logprobs is not None:
            about["prompt_logprobs"] = self._shapes.prompt(self._prompt.scores, self._body.prompt_logprobs)
        return about

    def _usage(self, output_tokens: int) -> dict[str, Any]:
        return usage([self._prompt.token_ids], output_tokens)
