"""A model of a few tokens whose every logit is written in a table, and a tokenizer of one token a character."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from quantgate.quality.quality_model import (
    ArmSupport,
    ChatPrompt,
    Continuations,
    GeneratedAnswer,
    ItemFailure,
)
from quantgate.quality.scores import Scores, WholeScores

ALPHABET = [chr(code) for code in range(32, 127)] + ["\n"]


class CharacterTokenizer:
    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        assert not add_special_tokens, "a chat template has written the special tokens already"
        return [ALPHABET.index(character) for character in text]

    def decode(self, token_ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        return "".join(ALPHABET[token_id] for token_id in token_ids)

    def get_vocab(self) -> dict[str, int]:
        return {character: index for index, character in enumerate(ALPHABET)}

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
    support: ArmSupport = field(default_factory=ArmSupport)
    concurrency: int = 1
    logits_calls: list[tuple[tuple[int, ...], tuple[tuple[int, ...], ...], int | None]] = field(default_factory=list)
    """(prompt, continuations, chunk_tokens) of each question."""
    generate_calls: list[list[str]] = field(default_factory=list)

    def score(
        self, questions: Sequence[Continuations], chunk_tokens: int | None = None
    ) -> list[list[Scores] | ItemFailure]:
        return [self._scores(question, chunk_tokens) for question in questions]

    def _scores(self, question: Continuations, chunk_tokens: int | None) -> list[Scores]:
        self.logits_calls.append((question.prompt_ids, question.options, chunk_tokens))
        return [WholeScores(self.table[[question.prompt_ids[-1], *option[:-1]]]) for option in question.options]

    def generate(self, prompts: Sequence[ChatPrompt], max_tokens: int) -> list[GeneratedAnswer | ItemFailure]:
        texts = [self._text(prompt) for prompt in prompts]
        self.generate_calls.append(texts)
        answers = [self._answer(text) for text in texts]
        return [
            GeneratedAnswer(answer[:max_tokens], len(answer[:max_tokens]), truncated=len(answer) >= max_tokens)
            for answer in answers
        ]

    def _text(self, prompt: ChatPrompt) -> str:
        if prompt.token_ids:
            return self.tokenizer.decode(prompt.token_ids)
        return "own template: " + " ".join(message.content for message in prompt.messages)

    def _answer(self, prompt: str) -> str:
        return next((answer for part, answer in self.answers.items() if part in prompt), "")


def random_table(seed: int, size: int = len(ALPHABET)) -> torch.Tensor:
    return torch.randn(size, size, generator=torch.Generator().manual_seed(seed))


def chat(text: str) -> ChatPrompt:
    """A prompt of this very text, already under a template."""
    return ChatPrompt((), tuple(CharacterTokenizer().encode(text, add_special_tokens=False)))
