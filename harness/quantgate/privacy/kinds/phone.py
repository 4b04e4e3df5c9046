"""Telephone numbers: international (E.164), North American, and national ones that begin with 0."""

from __future__ import annotations

import re

from typing_extensions import override

from quantgate.privacy.kind import PatternKind
from quantgate.privacy.registry import register_kind

_FORMS = (
    r"(?:\+|00)[1-9](?:[ ./()-]{0,2}[0-9]){7,14}",
    # North America: area, exchange, line.
    r"(?:1[-. ])?(?:\([2-9][0-9]{2}\)[ ]?|[2-9][0-9]{2}[-. ])[2-9][0-9]{2}[-. ][0-9]{4}",
    # An area or mobile code that begins with 0, a gap, and the number; and five pairs, as the French write them.
    r"(?:\(0[0-9]{2,4}\)[ ]?|0[1-9][0-9]{1,3}[ /-])[0-9]{3,4}(?:[ -]?[0-9]{2,4}){1,2}",
    r"0[1-9](?:[ .-][0-9]{2}){4}",
)


@register_kind
class Phone(PatternKind):
    """Bare rows of digits are taken only behind `+` or `00`: ids and amounts are written without gaps as well."""

    name = "PHONE"
    pattern = re.compile(rf"(?<![\w.+/-])(?:{'|'.join(_FORMS)})(?![\w-]|[.,][0-9])")

    @staticmethod
    @override
    def accepts(found: str) -> bool:
        # National numbers have 8 digits or more with their area code; E.164 ends at 15, and `00` may stand before them.
        return 8 <= sum(letter.isdigit() for letter in found) <= 17
