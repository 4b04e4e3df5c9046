"""The body of POST /v1/chat/completions."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from quantgate_engine.server.protocol.generation import MAX_INTEGER, Alternatives, GenerationRequest

Role = Literal["system", "developer", "user", "assistant", "tool", "function"]
"""OpenAI's, old ones too. A template that knows fewer refuses the others itself."""


class TextPart(BaseModel):
    """A part of a message; this server reads text alone."""

    model_config = ConfigDict(strict=True, frozen=True)

    type: Literal["text"]
    text: str


class Message(BaseModel):
    """A message; what else it carries (`name`, `tool_calls` ...) goes to the model's template as it is.

    Only an assistant's message may lack a content: it may be all tool calls.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="allow")

    role: Role
    content: str | list[TextPart] | None = None

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


class ChatCompletionRequest(GenerationRequest):
    """logprobs: asks for log-probabilities, of `top_logprobs` alternatives too.

    max_completion_tokens: OpenAI's new name of max_tokens, and the stronger of the two.
    chat_template_kwargs: variables of the model's template.
    """

    messages: list[Message] = Field(min_length=1)
    max_tokens: int | None = Field(default=None, ge=1, le=MAX_INTEGER)
    max_completion_tokens: int | None = Field(default=None, ge=1, le=MAX_INTEGER)
    logprobs: bool = False
    top_logprobs: Alternatives = 0
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)

    @property
    def requested_tokens(self) -> int | None:
        """None where the request leaves it to the server."""
        return self.max_completion_tokens or self.max_tokens or len(self.forced_token_ids) or None
