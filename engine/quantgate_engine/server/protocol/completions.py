"""The body of POST /v1/completions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from quantgate_engine.server.protocol.generation import MAX_INTEGER, Alternatives, GenerationRequest, TokenId

# OpenAI's own; whoever wants more says so.
DEFAULT_MAX_TOKENS = 16

TokenIds = Annotated[list[TokenId], Field(min_length=1)]
Texts = Annotated[list[str], Field(min_length=1)]


class CompletionRequest(GenerationRequest):
    """prompt: a text, token ids, or a list of either; each gets `n` choices.

    logprobs: with so many alternatives. echo: the prompt stands before the answer, and in its log-probabilities.
    max_tokens 0 generates nothing: with echo or prompt_logprobs, it asks what the model thinks of the prompt.
    add_special_tokens: as the tokenizer does by default, or not.
    """

    prompt: str | TokenIds | Texts | Annotated[list[TokenIds], Field(min_length=1)] = Field(union_mode="left_to_right")
    max_tokens: int = Field(default=0, ge=0, le=MAX_INTEGER)
    logprobs: Alternatives | None = None
    echo: bool = False
    add_special_tokens: bool = True

    @property
    def prompts(self) -> list[str | list[int]]:
        """One entry per prompt."""
        if isinstance(self.prompt, str):
            return [self.prompt]
        if isinstance(self.prompt[0], int):
            return [[token_id for token_id in self.prompt if isinstance(token_id, int)]]
        return [prompt for prompt in self.prompt if not isinstance(prompt, int)]

    @property
    def requested_tokens(self) -> int:
        if "max_tokens" in self.model_fields_set:
            return self.max_tokens
        return len(self.forced_token_ids) or DEFAULT_MAX_TOKENS
