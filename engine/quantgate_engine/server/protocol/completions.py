"""The body of POST /v1/completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, Tag
from typing_extensions import override

from quantgate_engine.server.protocol.forms import ID_LISTS, IDS, LIST, TEXT, text_or_tokens
from quantgate_engine.server.protocol.generation import MAX_INTEGER, Alternatives, GenerationRequest, SomeTokenIds

# OpenAI's own; whoever wants more says so.
DEFAULT_MAX_TOKENS = 16

TokenIds = Annotated[SomeTokenIds, Field(min_length=1)]
Texts = Annotated[list[str], Field(fail_fast=True)]
PromptField = Annotated[
    Annotated[str, Tag(TEXT)]
    | Annotated[TokenIds, Tag(IDS)]
    | Annotated[Texts, Tag(LIST)]
    | Annotated[list[TokenIds], Field(fail_fast=True), Tag(ID_LISTS)],
    text_or_tokens("a text, a list of texts, a list of token ids, or a list of lists of token ids, and no empty list"),
]


class CompletionRequest(GenerationRequest):
    """prompt: a text, token ids, or a list of either; each gets `n` choices.

    logprobs: with so many alternatives. echo: the prompt stands before the answer, and in its log-probabilities.
    max_tokens 0 generates nothing: with echo or prompt_logprobs, it asks what the model thinks of the prompt.
    add_special_tokens: as the tokenizer does by default, or not.
    """

    neutral_values: ClassVar[Mapping[str, tuple[Any, ...]]] = {"top_logprobs": (0,)}

    prompt: PromptField
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
    @override
    def requested_tokens(self) -> int:
        if "max_tokens" in self.model_fields_set:
            return self.max_tokens
        return len(self.forced_token_ids) or DEFAULT_MAX_TOKENS
