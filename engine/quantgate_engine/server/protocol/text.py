"""The bodies of POST /tokenize and /detokenize (as vLLM has them)."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from quantgate_engine.server.protocol.chat import Messages
from quantgate_engine.server.protocol.generation import TokenId
from quantgate_engine.server.protocol.unsupported import refuse_unsupported

MAX_DETOKENIZED = 131_072
"""Token ids that become text at once: above the contexts of the models, and a fraction of a second's work."""


class TokenizeRequest(BaseModel):
    """Either a text or the messages of a chat."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    model: str | None = None
    prompt: str | None = None
    messages: Messages | None = None
    add_special_tokens: bool = True
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _supported(cls, fields: Any) -> Any:
        if isinstance(fields, dict):
            refuse_unsupported(fields, {"return_token_strs": (False,)})
        return fields

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

    model: str | None = None
    tokens: Annotated[list[TokenId], Field(max_length=MAX_DETOKENIZED, fail_fast=True)]
