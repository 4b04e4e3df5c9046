"""German tax identification numbers (Steuerliche Identifikationsnummer, section 139b AO)."""

from __future__ import annotations

import re
from collections import Counter

from typing_extensions import override

from quantgate.privacy.kind import PatternKind
from quantgate.privacy.registry import register_kind


@register_kind
class GermanTaxId(PatternKind):
    """Eleven digits, alone or in groups of 2, 3, 3, 3, with their digit rule and their check digit."""

    name = "GERMAN_TAX_ID"
    pattern = re.compile(r"(?<![\w.+-])[1-9][0-9](?P<gap> ?)[0-9]{3}(?P=gap)[0-9]{3}(?P=gap)[0-9]{3}(?![\w-]|\.[0-9])")

    @staticmethod
    @override
    def accepts(found: str) -> bool:
        digits = [int(letter) for letter in found if letter.isdigit()]
        repeated = [count for count in Counter(digits[:10]).values() if count > 1]
        return len(repeated) == 1 and repeated[0] <= 3 and check_digit(digits[:10]) == digits[10]


def check_digit(digits: list[int]) -> int:
    """ISO/IEC 7064, MOD 11,10."""
    product = 10
    for digit in digits:
        total = (digit + product) % 10 or 10
        product = 2 * total % 11
    return (11 - product) % 10
