"""How a request for completions of either kind is answered, whole or in events: all that the two interfaces share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any, ClassVar, Generic, TypeVar

from fastapi import Request
from starlette.responses import JSONResponse, Response

from quantgate_engine.server.choices import Choice
from quantgate_engine.server.client_watch import unless_client_leaves
from quantgate_engine.server.event_stream import EventStream
from quantgate_engine.server.front_door import TICKET
from quantgate_engine.server.generation import Answer, Piece, generate
from quantgate_engine.server.logprob_shapes import LogprobShapes
from quantgate_engine.server.merge import merged
from quantgate_engine.server.prompt_scoring import ScoredPrompt
from quantgate_engine.server.protocol.generation import GenerationRequest
from quantgate_engine.server.service import Service
from quantgate_engine.server.token_fields import check_token_fields
from quantgate_engine.server.usage import Usage

Body = TypeVar("Body", bound=GenerationRequest)


async def answer_request(
    service: Service,
    body: Body,
    request: Request,
    num_prompts: int,
    prepare: Callable[[Service, Body], Awaitable[Answering[Body]]],
) -> Response:
    """The response to a request for `body.n` choices of each of its prompts; a client that leaves ends its work.

    Raises ApiError where the model is not served here or has no such tokens, where there is no room for the choices,
    and what `prepare` does.
    """
    service.check_model(body.model)
    check_token_fields(service, body)

    async def respond() -> Response:
        getattr(request.state, TICKET).widen(num_prompts * body.n - 1)
        answering = await prepare(service, body)
        return await answering.response()

    return await unless_client_leaves(request.receive, respond())


class Answering(ABC, Generic[Body]):
    """One request's answer; a subclass gives its parts the form of its interface.

    whole_object, event_object: what the interface calls its documents.
    """

    whole_object: ClassVar[str]
    event_object: ClassVar[str]

    def __init__(
        self, service: Service, body: Body, answer_id: str, choices: Sequence[Choice], prompts: Sequence[ScoredPrompt]
    ) -> None:
        self._service = service
        self._body = body
        self._choices = choices
        self._prompts = prompts
        self._usage = Usage(prompt_tokens=sum(len(prompt.token_ids) for prompt in prompts))
        self._shapes = LogprobShapes(service.token_pieces, as_ids=body.return_tokens_as_token_ids)
        self._head = {
            "id": answer_id,
            "created": service.now_s(),
            "model": service.settings.served_name,
            "system_fingerprint": service.fingerprint,
        }

    async def response(self) -> Response:
        if self._body.stream:
            return await EventStream.begun(self._events(), self._service.settings.request_timeout_s)
        return JSONResponse(await self._whole())

    @abstractmethod
    def whole_choice(self, index: int, answer: Answer) -> dict[str, Any]:
        """The choice with this index in a whole answer."""

    @abstractmethod
    def event_choice(self, piece: Piece, *, opens: bool) -> dict[str, Any]:
        """The choice as an event brings it; `opens`: it is the first event of this choice."""

    def about_request(self) -> dict[str, Any]:
        """What stands beside the choices of a whole answer, and in the first event of a stream."""
        return {}

    def pieces_of(self, choice: Choice) -> AsyncGenerator[Piece, None]:
        """All that a choice consists of, as it comes."""
        return generate(self._service, choice, self._usage)

    def with_extras(self, choice: dict[str, Any], answer: Answer | Piece) -> dict[str, Any]:
        """The choice with the ids of its tokens, where they are asked for, and with what was cut from the request."""
        extras = dict[str, Any]()
        if self._body.return_token_ids:
            extras["token_ids"] = list(answer.token_ids)
        if answer.degraded is not None:
            extras["degraded"] = answer.degraded
        return choice | extras

    def about_prompt(self, prompt: ScoredPrompt) -> dict[str, Any]:
        """What the request wants to know of its prompt."""
        about = dict[str, Any]()
        if self._body.return_token_ids:
            about["prompt_token_ids"] = list(prompt.token_ids)
        if self._body.prompt_logprobs is not None:
            about["prompt_logprobs"] = self._shapes.prompt(prompt.scores, self._body.prompt_logprobs)
        return about

    async def _whole(self) -> dict[str, Any]:
        answers = [Answer() for _ in self._choices]
        async with aclosing(self._pieces()) as pieces:
            async for piece in pieces:
                answers[piece.index].add(piece)
        choices = [self.whole_choice(index, answer) for index, answer in enumerate(answers)]
        head = self._head | {"object": self.whole_object}
        return head | {"choices": choices, "usage": self._usage.document()} | self.about_request()

    async def _events(self) -> AsyncGenerator[dict[str, Any], None]:
        head, opened = self._head | {"object": self.event_object}, set[int]()
        wants_usage = self._body.stream_options.include_usage
        beside = self.about_request()
        async with aclosing(self._pieces()) as pieces:
            async for piece in pieces:
                if not (piece.text or piece.finish_reason or piece.logprobs or self._body.return_token_ids):
                    continue
                choice = self.event_choice(piece, opens=piece.index not in opened)
                opened.add(piece.index)
                yield head | {"choices": [choice]} | ({"usage": None} if wants_usage else {}) | beside
                beside = {}
        if wants_usage:
            yield head | {"choices": [], "usage": self._usage.document()}

    def _pieces(self) -> AsyncGenerator[Piece, None]:
        return merged([self.pieces_of(choice) for choice in self._choices])
