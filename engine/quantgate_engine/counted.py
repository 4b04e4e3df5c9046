"""Numbers with their nouns, wherever a sentence counts something."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """`1 token`, `1,234 tokens`; many: where the plural takes more than an s."""
    return f"{number:,} {plural(number, one, many)}"


def plural(number: int, one: str, many: str = "") -> str:
    """The word behind a number that stands elsewhere, or the verb behind the noun: `plural(number, "was", "were")`."""
    return one if number == 1 else many or f"{one}s"
