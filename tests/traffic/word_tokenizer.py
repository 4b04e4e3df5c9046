"""A tokenizer for tests whose every token can be told by looking: one token a word, the space before it included."""

from __future__ import annotations

import re
from collections.abc import Sequence

WORDS = [" alpha", " beta", " gamma", " delta", " epsilon", " zeta"]
SPECIAL = ["<bos>", "<sys>", "<user>", "<assistant>"]
OTHER = ["!", "Hi", " Ab", "\ufffd", " 12"]


class WordTokenizer:
    def __init__(self, *, template_error: Exception | None = None) -> None:
        self._texts = [*SPECIAL, *OTHER, *WORDS]
        self._ids = {text: number for number, text in enumerate(self._texts)}
        self._template_error = template_error

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        pieces = re.findall(r"<\w+>| ?[^\s<]+", text)
        ids = [self._ids.setdefault(piece, len(self._ids)) for piece in pieces]
        return [0, *ids] if add_special_tokens else ids

    def decode(self, token_ids: Sequence[int]) -> str:
        texts = {number: text for text, number in self._ids.items()}
        return "".join(texts[token_id] for token_id in token_ids)

    def get_vocab(self) -> dict[str, int]:
        return {text: self._ids[text] for text in self._texts}

    def apply_chat_template(
        self, conversation: list[dict[str, str]], *, tokenize: bool, add_generation_prompt: bool
    ) -> str:
        if self._template_error is not None:
            raise self._template_error
        assert not tokenize
        turns = "".join(f"<{message['role']}> {message['content']}" for message in conversation)
        return turns + ("<assistant>" if add_generation_prompt else "")
