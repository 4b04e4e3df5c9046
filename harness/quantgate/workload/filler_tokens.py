"""Stand-in prompts for traces that tell lengths only: the right number of tokens, drawn from real words.

Random ids over the whole vocabulary would hit special tokens and half characters, and a prompt that does not survive
decoding and encoding has another length on an HTTP target than in process.
"""

from __future__ import annotations

import random
import re

from quantgate.traces.prompt_blocks import PromptBlocks
from quantgate.workload.tokenizer import Tokenizer
from quantgate_engine.errors import ConfigurationError

_WORD = re.compile(r" [a-z]{3,12}")
_WORD_WITHOUT_SPACE = re.compile(r"[a-z]{3,12}")


class FillerTokens:
    """Draws prompts of a given number of tokens, the same for the same seed and request id, or ids of blocks, on every
    machine."""

    def __init__(self, tokenizer: Tokenizer, seed: int) -> None:
        self._seed = seed
        self._words = _word_tokens(tokenizer)

    def draw(self, request_id: str, count: int) -> tuple[int, ...]:
        """`count` token ids for a prompt of which nothing is known but its length."""
        return tuple(self._words_of(f"{self._seed}:{request_id}", count))

    def draw_blocks(self, blocks: PromptBlocks, count: int) -> tuple[int, ...]:
        """`count` token ids of a prompt of these blocks: each is drawn by its id alone, and the last one may be cut."""
        size = blocks.block_tokens
        tokens: list[int] = []
        for block_id in blocks.ids:
            tokens += self._words_of(f"{self._seed}/{block_id}", min(size, count - len(tokens)))
        return tuple(tokens)

    def _words_of(self, key: str, count: int) -> list[int]:
        """`random` documents that seeding by text and `random()` stay the same over versions."""
        generator = random.Random(key)
        return [self._words[int(generator.random() * len(self._words))] for _ in range(count)]


def _word_tokens(tokenizer: Tokenizer) -> list[int]:
    """Ids that decode to one lower-case English-looking word, in rising order.

    Words with their leading space are preferred, as they stay one token each when joined; tokenizers that drop that
    space when they decode a single token are served by the second pattern.
    """
    texts = {token_id: tokenizer.decode([token_id]) for token_id in sorted(tokenizer.get_vocab().values())}
    for pattern in (_WORD, _WORD_WITHOUT_SPACE):
        words = [token_id for token_id, text in texts.items() if pattern.fullmatch(text)]
        if words:
            return words
    raise ConfigurationError(
        "The tokenizer has no token that is a plain lower-case word, which prompts of a trace without text are "
        "filled with; use a trace with text for this model."
    )
