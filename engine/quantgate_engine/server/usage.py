"""The count of tokens that an answer ends with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def usage(prompts: Iterable[tuple[int, ...]], output_tokens: int) -> dict[str, Any]:
    """Each prompt counts once, however many choices it has; the tokens that stopped an answer count too."""
    prompt_tokens = sum(map(len, prompts))
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": prompt_tokens + output_tokens,
    }
