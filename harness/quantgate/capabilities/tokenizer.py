"""What the probe asks of the run's tokenizer; transformers' fast tokenizers have it."""

from __future__ import annotations

from typing import Protocol

from quantgate.capabilities.token_texts import VocabularyTokenizer


class ProbeTokenizer(VocabularyTokenizer, Protocol):
    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]: ...
