"""The body of POST /v1/chat/completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, Tag, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import override

from quantgate_engine.chat_messages import Role
from quantgate_engine.server.protocol.forms import LIST, TEXT, text_or_list
from quantgate_engine.server.protocol.generation import MAX_INTEGER, Alternatives, GenerationRequest


class TextPart(BaseModel):
    """A part of a message; this server reads text alone."""

    model_config = ConfigDict(strict=True, frozen=True)

    type: str
    text: str = ""

    @model_validator(mode="after")
    def _is_text(self) -> Self:
        if self.type != "text":
            raise PydanticCustomError(
                "no_text_part",
                "a part of the type {found} is not read; this server reads parts of the type 'text' alone",
                {"found": ascii(self.type)},
            )
        if "text" not in self.model_fields_set:
            raise PydanticCustomError("no_text", "a part of the type 'text' needs a text")
        return self


Content = Annotated[
    Annotated[str, Tag(TEXT)] | Annotated[list[TextPart], Field(fail_fast=True), Tag(LIST)],
    text_or_list("a text, or a list of parts of the type 'text'"),
]


class Message(BaseModel):
    """A message; what else it carries (`name`, `tool_calls` ...) goes to the model's template as it is.

    Only an assistant's message may lack a content: it may be all tool calls.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="allow")

    role: Role
    content: Content | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.content is None and self.role != "assistant":
            raise PydanticCustomError(
                "no_content", "a message of the role {role} needs a content, a text", {"role": self.role}
            )
        return self

    def for_template(self) -> dict[str, Any]:
        """The message with its content as one text."""
        content = self.content or ""
        text = content if isinstance(content, str) else "\n".join(part.text for part in content)
        return {**(self.model_extra or {}), "role": self.role, "content": text}


Messages = Annotated[list[Message], Field(min_length=1, fail_fast=True)]


class ChatCompletionRequest(GenerationRequest):
    """logprobs: asks for log-probabilities, of `top_logprobs` alternatives too.

    max_completion_tokens: OpenAI's new name of max_tokens, and the stronger of the two.
    chat_template_kwargs: variables of the model's template.
    """

    neutral_values: ClassVar[Mapping[str, tuple[Any, ...]]] = {"add_special_tokens": (False,), "echo": (False,)}

    messages: Messages
    max_tokens: int | None = Field(default=None, ge=1, le=MAX_INTEGER)
    max_completion_tokens: int | None = Field(default=None, ge=1, le=MAX_INTEGER)
    logprobs: bool = False
    top_logprobs: Alternatives = 0
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _alternatives_have_their_tokens(self) -> Self:
        if self.top_logprobs and not self.logprobs:
            raise PydanticCustomError("not_together", "it needs logprobs: true beside it", {"field": "top_logprobs"})
        return self

    @property
    @override
    def limit_field(self) -> str:
        return "max_tokens" if self.max_completion_tokens is None else "max_completion_tokens"

    @property
    @override
    def requested_tokens(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens or len(self.forced_token_ids) or None
