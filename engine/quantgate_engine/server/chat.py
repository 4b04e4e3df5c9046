"""POST /v1/chat/completions"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from quantgate_engine.server.answering import Answering, answer_request
from quantgate_engine.server.choices import make_choices
from quantgate_engine.server.generation import Answer, Piece
from quantgate_engine.server.json_body import JsonBodyRoute
from quantgate_engine.server.prompt_encoding import encode_chat
from quantgate_engine.server.prompt_scoring import score_prompts
from quantgate_engine.server.protocol.chat import ChatCompletionRequest
from quantgate_engine.server.service import Service


def chat_router(service: Service) -> APIRouter:
    router = APIRouter(route_class=JsonBodyRoute)

    @router.post("/v1/chat/completions")
    async def create_chat_completion(body: ChatCompletionRequest, request: Request) -> Response:
        """Answers a chat, `n` times; as server-sent events where `stream` is set."""
        return await answer_request(service, body, request, num_prompts=1, prepare=_prepare)

    return router


async def _prepare(service: Service, body: ChatCompletionRequest) -> _Chat:
    messages = [message.for_template() for message in body.messages]
    prompt = await encode_chat(service, messages, body.chat_template_kwargs)
    answer_id = service.next_id("chatcmpl")
    choices = make_choices(
        service,
        body,
        [prompt],
        answer_id=answer_id,
        max_tokens=body.requested_tokens,
        logprobs=body.top_logprobs if body.logprobs else None,
        turn_starts=await service.turn_starts(messages, prompt, body.chat_template_kwargs),
    )
    return _Chat(service, body, answer_id, choices, await score_prompts(service, [prompt], body.prompt_logprobs))


class _Chat(Answering[ChatCompletionRequest]):
    whole_object = "chat.completion"
    event_object = "chat.completion.chunk"

    def whole_choice(self, index: int, answer: Answer) -> dict[str, Any]:
        message = {"role": "assistant", "content": answer.text, "refusal": None}
        return self._choice(index, answer, {"message": message})

    def event_choice(self, piece: Piece, *, opens: bool) -> dict[str, Any]:
        # The role comes with the first text: an event of its own would look like a first token.
        role = {"role": "assistant"} if opens else {}
        return self._choice(piece.index, piece, {"delta": role | {"content": piece.text}})

    def about_request(self) -> dict[str, Any]:
        [prompt] = self._prompts
        return self.about_prompt(prompt)

    def _choice(self, index: int, answer: Answer | Piece, content: dict[str, Any]) -> dict[str, Any]:
        choice = {
            "index": index,
            **content,
            "logprobs": self._shapes.chat(answer.logprobs) if self._body.logprobs else None,
            "finish_reason": answer.finish_reason,
        }
        return self.with_extras(choice, answer)
