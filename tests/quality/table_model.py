"""A model of a few tokens whose every logit is written in a table, and a tokenizer of one token a character."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

ALPHABET = [chr(code) for code in range(32, 127)] + ["\n"]


class CharacterTokenizer:
    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        assert not add_special_tokens, "a chat template has written the special tokens already"
        return [ALPHABET.index(character) for character in text]

    def decode(self, token_ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        return "".join(ALPHABET[token_id] for token_id in token_ids)

    def apply_chat_template(
        self, conversation: Sequence[Mapping[str, str]], *, tokenize: bool = True, add_generation_prompt: bool = False
    ) -> str:
        assert not tokenize
        assert add_generation_prompt
        return "".join(f"{turn['role']}: {turn['content']}\n" for turn in conversation) + "assistant:\n"


@dataclass
class TableModel:
    """Row t of `table` [vocabulary, vocabulary] is the logits after token t; answers go by a part of the prompt."""

    table: torch.Tensor
    answers: Mapping[str, str] = field(default_factory=dict)
    tokenizer: CharacterTokenizer = field(default_factory=CharacterTokenizer)
    logits_calls: list[tuple[tuple[int, ...], tuple[tuple[int, ...], ...], int | None]] = field(default_factory=list)
    """(prompt, continuations, chunk_tokens) of each call."""
    generate_calls: list[list[str]] = field(default_factory=list)

    def continuation_logits(
        self, prompt_ids: Sequence[int], continuations: Sequence[Sequence[int]], chunk_tokens: int | None = None
    ) -> list[torch.Tensor]:
        self.logits_calls.append((tuple(prompt_ids), tuple(map(tuple, continuations)), chunk_tokens))
        return [self.table[[prompt_ids[-1], *continuation[:-1]]] for continuation in continuations]

    def generate(self, prompts: Sequence[Sequence[int]], max_tokens: int) -> list[list[int]]:
        texts = [self.tokenizer.decode(prompt) for prompt in prompts]
        self.generate_calls.append(texts)
        return [self.tokenizer.encode(self._answer(text), add_special_tokens=False)[:max_tokens] for text in texts]

    def _answer(self, prompt: str) -> str:
        return next((answer for part, answer in self.answers.items() if part in prompt), "")


def random_table(seed: int, size: int = len(ALPHABET)) -> torch.Tensor:
    return torch.randn(size, size, generator=torch.Generator().manual_seed(seed))
