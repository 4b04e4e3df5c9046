"""What the quality tiers need of an arm, and no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch


class Tokenizer(Protocol):
    """The part of a transformers fast tokenizer that the quality tiers use."""

    def encode(self, text: str, *, add_special_tokens: bool = ...) -> list[int]: ...

    def decode(self, token_ids: Sequence[int], *, skip_special_tokens: bool = ...) -> str: ...

    def apply_chat_template(
        self, conversation: Sequence[Mapping[str, str]], *, tokenize: bool = ..., add_generation_prompt: bool = ...
    ) -> str: ...


class QualityModel(Protocol):
    """One arm as the quality tiers see it."""

    @property
    def tokenizer(self) -> Tokenizer: ...

    def continuation_logits(
        self, prompt_ids: Sequence[int], continuations: Sequence[Sequence[int]], chunk_tokens: int | None = None
    ) -> list[torch.Tensor]:
        """Teacher-forced logits of continuations of one prompt, float32 [len(continuation), vocabulary] each.

        Row i is the arm's view of continuation[i]. `chunk_tokens` is the prompt's prefill chunk (None: the arm's own
        choice).
        """
        ...

    def generate(self, prompts: Sequence[Sequence[int]], max_tokens: int) -> list[list[int]]:
        """Greedy continuations, one per prompt, in the prompts' order.

        A continuation that ends by itself is shorter than `max_tokens`: its stop token is left out.
        """
        ...
