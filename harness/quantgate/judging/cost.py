"""What judging will cost: estimated before it starts, and bounded for the budget."""

from __future__ import annotations

import math
from dataclasses import dataclass

from quantgate.judging.budget import CallLimit, Spending
from quantgate.judging.instructions import ChatMessages

_BYTES_PER_TOKEN = 4
"""English text in current vocabularies; other languages take more tokens, which the bound covers."""
_TYPICAL_REPLY_TOKENS = 50
_TEMPLATE_TOKENS = 256
"""Set aside for what a server's chat template adds to the messages."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Price per million tokens, in any currency."""

    prompt: float
    completion: float

    def of(self, spending: Spending) -> float:
        return (spending.prompt_tokens * self.prompt + spending.completion_tokens * self.completion) / 1e6


def call_limit(messages: ChatMessages, max_tokens: int) -> CallLimit:
    """Tokens that no vocabulary exceeds: a token stands for at least one byte of the text."""
    return CallLimit(_bytes(messages) + _TEMPLATE_TOKENS, max_tokens)


def likely_cost(messages: ChatMessages, max_tokens: int) -> Spending:
    """What one call will use, about."""
    return Spending(1, math.ceil(_bytes(messages) / _BYTES_PER_TOKEN), min(_TYPICAL_REPLY_TOKENS, max_tokens))


def _bytes(messages: ChatMessages) -> int:
    return sum(len(message["content"].encode()) for message in messages)
