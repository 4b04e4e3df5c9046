"""Tier three: habits of an arm's answers that no gold answer is needed for."""

from __future__ import annotations

import re
from collections import Counter

from quantgate.quality.task_item import Answer
from quantgate.quality.text_matching import plain_quotes, words

# Where a refusal shows: at the beginning. Later on, "I cannot" is mostly part of an answer.
_OPENING_CHARACTERS = 200
_UNABLE = r"(?:can(?:'t|not)|could(?:n't| not)|won't|will not|(?:'m| am) (?:unable|not able) to)"
_ACTS = r"(?:help|assist|provide|answer|comply|fulfil|fulfill|do that|discuss|create|generate|share|write)"
_REFUSAL = re.compile(
    rf"\bsorry,? (?:but )?i ?{_UNABLE}"
    rf"|\bi ?{_UNABLE} {_ACTS}\b"
    rf"|\bas an ai\b.{{0,30}}\bi ?{_UNABLE}"
    r"|\bit (?:would be|is) (?:inappropriate|unethical|not appropriate)\b",
    re.IGNORECASE | re.DOTALL,
)
# Saying that the documents do not hold the answer is abstention, a right answer in places; it is no refusal.
_ABSTENTION = re.compile(
    r"(?:not have|don't have|lack) (?:enough|sufficient|the necessary) information|documents? (?:do|does) not",
    re.IGNORECASE,
)

_LOOP_WORDS = 3
_LOOP_TIMES = 3


def refused(text: str) -> bool:
    """Whether the answer's first 200 characters decline to answer."""
    opening = plain_quotes(text.strip())[:_OPENING_CHARACTERS]
    return bool(_REFUSAL.search(opening)) and not _ABSTENTION.search(opening)


def looped(text: str) -> bool:
    """Whether some three words in a row occur three times or more."""
    found = words(text)
    grams = Counter(tuple(found[start : start + _LOOP_WORDS]) for start in range(len(found) - _LOOP_WORDS + 1))
    return max(grams.values(), default=0) >= _LOOP_TIMES


def behaviour_metrics(answer: Answer, answer_tokens: int) -> dict[str, float]:
    """Metrics by name: `refused`, `looped`, `stopped` (ended by itself) as 0 or 1, and `answer_tokens`."""
    return {
        "refused": float(refused(answer.text)),
        "looped": float(looped(answer.text)),
        "stopped": float(not answer.truncated),
        "answer_tokens": float(answer_tokens),
    }
