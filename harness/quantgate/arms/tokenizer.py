"""What a run asks of its arms' tokenizer, over all its phases; transformers' fast tokenizers have it."""

from __future__ import annotations

from typing import Protocol

from quantgate.quality.quality_model import Tokenizer


class RunTokenizer(Tokenizer, Protocol):
    """Fits the narrower protocols of planning, probing and counting too."""

    def get_vocab(self) -> dict[str, int]: ...
