"""International bank account numbers (ISO 13616), by country, length and checksum."""

from __future__ import annotations

import re
from collections.abc import Iterator

from typing_extensions import override

from quantgate.privacy.kind import PersonalDataKind, Span
from quantgate.privacy.registry import register_kind

# Characters by country, from the IBAN registry that SWIFT keeps for ISO 13616.
_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29, "BY": 28,
    "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18,
    "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22,
    "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20,
    "LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MR": 27, "MT": 31, "MU": 30, "NL": 18,
    "NO": 15, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "SA": 24, "SC": 31, "SE": 24,
    "SI": 19, "SK": 24, "SM": 27, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24,
    "XK": 20,
}  # fmt: skip
_START = re.compile(r"(?<![A-Za-z0-9])(?P<country>[A-Za-z]{2})[0-9]{2}(?:[ -]?[A-Za-z0-9]){11,}")


@register_kind
class Iban(PersonalDataKind):
    name = "IBAN"

    @override
    def find(self, text: str) -> Iterator[Span]:
        position = 0
        while match := _START.search(text, position):
            end = _end_of_number(text, match)
            if end is not None:
                yield Span(match.start(), end)
            # A word of two letters and two digits may stand right before an account number.
            position = end or match.start() + 1


def _end_of_number(text: str, match: re.Match[str]) -> int | None:
    length = _LENGTHS.get(match["country"].upper(), 0)
    places = [place for place in range(match.start(), match.end()) if text[place].isalnum()]
    if not 0 < length <= len(places):
        return None
    end = places[length - 1] + 1
    stands_alone = end == len(text) or not text[end].isalnum()
    return end if stands_alone and passes_mod_97("".join(text[place] for place in places[:length])) else None


def passes_mod_97(iban: str) -> bool:
    """Country and check digits moved to the end, letters read as 10 to 35: the number leaves 1 modulo 97 (ISO 7064)."""
    moved = iban[4:] + iban[:4]
    return int("".join(str(int(letter, 36)) for letter in moved)) % 97 == 1
