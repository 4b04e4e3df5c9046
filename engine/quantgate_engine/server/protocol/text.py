"""The bodies of POST /tokenize and /detokenize (as vLLM has them)."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from quantgate_engine.server.protocol.chat import Message
from quantgate_engine.server.protocol.generation import TokenId


class TokenizeRequest(BaseModel):
    """Either a text or the messages of a chat."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    prompt: str | None = None
    messages: list[Message] | None = Field(default=None, min_length=1)
    add_special_tokens: bool = True
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.prompt is None) == (self.messages is None):
            found = "neither" if self.prompt is None else "both"
            raise PydanticCustomError(
                "one_of_two", "The body has {found} of prompt and messages; give one of them", {"found": found}
            )
        return self


class DetokenizeRequest(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    tokens: list[TokenId]
