"""Payment card numbers: 13 to 19 digits with a check digit (ISO/IEC 7812-1, Luhn's formula)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from typing_extensions import override

from quantgate.privacy.kind import PersonalDataKind, Span
from quantgate.privacy.registry import register_kind

_START = re.compile(r"(?<![\w.+-])[2-6](?:[ -]?[0-9]){12,}")

# Length -> first digits of the payment networks that use it (ISO/IEC 7812-1). The commonest length comes first: digits
# behind the number may be its expiry date or its security code.
_FIRST_DIGITS = {16: "23456", 15: "3", 14: "3", 19: "456", 13: "4"}


@register_kind
class CreditCard(PersonalDataKind):
    name = "CREDIT_CARD"

    @override
    def find(self, text: str) -> Iterator[Span]:
        position = 0
        while match := _START.search(text, position):
            end = _end_of_number(text, match)
            if end is not None:
                yield Span(match.start(), end)
            position = end or match.end()


def _end_of_number(text: str, match: re.Match[str]) -> int | None:
    places = [place for place in range(match.start(), match.end()) if text[place].isdigit()]
    for length, first_digits in _FIRST_DIGITS.items():
        if len(places) < length or text[match.start()] not in first_digits:
            continue
        end = places[length - 1] + 1
        stands_alone = end == len(text) or not (text[end].isalnum() or text[end] == "_")
        if stands_alone and passes_luhn([int(text[place]) for place in places[:length]]):
            return end
    return None


def passes_luhn(digits: list[int]) -> bool:
    """Every second digit from the right is doubled, nine taken off where that passes nine; the sum ends in 0."""
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
