"""One call of the judge: chat messages in, its text and what it used out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from quantgate.judging.instructions import ChatMessages
from quantgate.targets.openai.endpoint import EndpointError
from quantgate_engine.errors import ConfigurationError

_PATH = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class JudgeAnswer:
    """Token counts are None where the server gives no usage."""

    text: str | None
    prompt_tokens: int | None
    completion_tokens: int | None


class JsonEndpoint(Protocol):
    """What is needed of `quantgate.targets.openai.endpoint.Endpoint`."""

    async def post_json(self, path: str, body: Any) -> Any: ...


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Message


_MOST_TOKENS = 2**31 - 1
"""What a row can hold; a server that states more has overdrawn any budget anyway."""
_Count = Annotated[int, Field(ge=0), AfterValidator(lambda count: min(count, _MOST_TOKENS))]


class _Usage(BaseModel):
    prompt_tokens: _Count
    completion_tokens: _Count


class _Billed(BaseModel):
    usage: _Usage


class _Completion(BaseModel):
    choices: list[_Choice] = Field(min_length=1)


class JudgeClient:
    """Asks one model, at temperature 0, so that the same question gets the same answer as far as its server allows."""

    def __init__(self, endpoint: JsonEndpoint, model: str, max_tokens: int, extra_body: Mapping[str, Any]) -> None:
        """`extra_body` is laid over the request; a value of None takes a field away (`{"temperature": None}`).

        Raises ConfigurationError where it lets replies grow beyond `max_tokens`, which the budget rests on.
        """
        limits = [extra_body.get("max_tokens", max_tokens), extra_body.get("max_completion_tokens")]
        stated = [limit for limit in limits if limit is not None]
        if not stated or not all(isinstance(limit, int) and limit <= max_tokens for limit in stated):
            raise ConfigurationError(
                f"The extra body allows replies above --max-tokens ({max_tokens}), which the budget reckons with; set "
                "max_tokens or max_completion_tokens there to at most that number, or raise --max-tokens."
            )
        self._endpoint = endpoint
        self._extra_body = extra_body
        self.model = model
        self.max_tokens = max_tokens

    async def ask(self, messages: ChatMessages) -> JudgeAnswer:
        """Makes exactly one call.

        An answer of another shape that states a usage was billed: it comes back without text. Raises EndpointError
        where the call brings no chat completion and no usage.
        """
        body = {"model": self.model, "messages": messages, "temperature": 0, "max_tokens": self.max_tokens}
        sent = {name: value for name, value in (body | dict(self._extra_body)).items() if value is not None}
        document = await self._endpoint.post_json(_PATH, sent)
        usage = _usage_of(document)
        try:
            text = _Completion.model_validate(document).choices[0].message.content
        except ValidationError:
            if usage is None:
                raise EndpointError(
                    "The judge's endpoint answered something that is no chat completion; check --endpoint.",
                    "malformed_event",
                ) from None
            text = None
        return JudgeAnswer(text, usage.prompt_tokens if usage else None, usage.completion_tokens if usage else None)


def _usage_of(document: Any) -> _Usage | None:
    try:
        return _Billed.model_validate(document).usage
    except ValidationError:
        return None
