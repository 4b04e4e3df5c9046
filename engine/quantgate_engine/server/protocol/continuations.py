"""The body of POST /quantgate/continuation_logits."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from quantgate_engine.server.protocol.completions import TokenIds


class ContinuationsRequest(BaseModel):
    """Continuations of one prompt; chunk_tokens: compute the prompt in chunks of so many tokens."""

    model_config = ConfigDict(strict=True, frozen=True)

    prompt_token_ids: TokenIds
    continuations: Annotated[list[TokenIds], Field(min_length=1, fail_fast=True)]
    chunk_tokens: int | None = Field(default=None, ge=1)
