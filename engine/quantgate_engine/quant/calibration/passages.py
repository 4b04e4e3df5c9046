"""Texts known by the hashes of their passages, so that calibration can be kept apart from what a model is judged by.

A passage is a run of words, and every run counts, wherever it begins: texts that share a sentence share a hash.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable

from quantgate_engine.errors import ConfigurationError

WORDS_OF_A_PASSAGE = 13
"""As GPT-3's authors took it for the overlap of training and test texts (Brown et al. 2020, arXiv:2005.14165,
appendix C): long enough that turns of phrase do not meet by chance."""

_WORD = re.compile(r"\w+")


def passage_hashes(text: str) -> frozenset[str]:
    """Of each run of 13 words, without case, punctuation and white space; of a shorter text, of all its words."""
    words = _WORD.findall(text.casefold())
    if not words:
        return frozenset()
    last = max(len(words) - WORDS_OF_A_PASSAGE, 0)
    runs = (" ".join(words[start : start + WORDS_OF_A_PASSAGE]) for start in range(last + 1))
    return frozenset(hashlib.blake2b(run.encode(), digest_size=12).hexdigest() for run in runs)


def passages_sha256(passages: Collection[str]) -> str | None:
    """Of them all, for the record of what a text was kept apart from; None where there are none."""
    return hashlib.sha256("\n".join(sorted(passages)).encode()).hexdigest() if passages else None


def require_disjoint(texts: Iterable[str], forbidden: Collection[str]) -> None:
    """Raises ConfigurationError where a text holds a passage whose hash is forbidden."""
    for text in texts:
        shared = passage_hashes(text).intersection(forbidden)
        if shared:
            raise ConfigurationError(
                f"The calibration text that begins {text[:60]!r} shares {len(shared)} passages with what the model is "
                "judged by; a quantizer that has seen the questions flatters itself. Use another text."
            )
