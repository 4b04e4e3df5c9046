"""The count of tokens that an answer ends with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Usage:
    """Tokens of one request, counted while its choices are drawn.

    Each prompt counts once, however many choices it has, without the turns that were left out so that it could run;
    the tokens that stopped an answer count too. cached_tokens: those of the prompts that were found in the cache.
    """

    prompt_tokens: int
    cached_tokens: int = 0
    output_tokens: int = 0

    def document(self) -> dict[str, Any]:
        """The object `usage` of OpenAI's interface."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.output_tokens,
            "total_tokens": self.prompt_tokens + self.output_tokens,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
        }
