"""How an answer's words are compared: the same rules for every checker that looks for text."""

from __future__ import annotations

import re
import unicodedata

# A number keeps its decimal point, "1,200" is one number, and an apostrophe stays inside its word.
_WORD = re.compile(r"\d+(?:[.,]\d+)*|\w+(?:'\w+)*")


def plain_quotes(text: str) -> str:
    """Typographic quotes as ASCII ones: models write both, and no checker should care."""
    return text.translate({0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"'})


def words(text: str) -> list[str]:
    """The text's words in lower case, without punctuation; thousands separators are dropped."""
    normal = unicodedata.normalize("NFKC", plain_quotes(text)).casefold()
    found = (word.replace(",", "") if word[0].isdigit() else word for word in _WORD.findall(normal))
    return list(found)


def without_article(phrase: str) -> str:
    """The phrase without a leading English article, which an answer may leave out or change."""
    return re.sub(r"^(?:an?|the)\s+", "", phrase, flags=re.IGNORECASE)


def contains_phrase(text: str, phrase: str) -> bool:
    """Whether the phrase's words stand in the text, whole and in a row."""
    haystack, needle = words(text), words(phrase)
    return bool(needle) and any(
        haystack[start : start + len(needle)] == needle for start in range(len(haystack) - len(needle) + 1)
    )


def contains_any_phrase(text: str, phrases: list[str]) -> bool:
    """Whether at least one of the phrases stands in the text."""
    return any(contains_phrase(text, phrase) for phrase in phrases)
