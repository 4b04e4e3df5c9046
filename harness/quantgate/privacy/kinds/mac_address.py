"""Hardware addresses of network interfaces (EUI-48)."""

from __future__ import annotations

import re

from typing_extensions import override

from quantgate.privacy.kind import PatternKind
from quantgate.privacy.registry import register_kind


@register_kind
class MacAddress(PatternKind):
    """Six pairs of hexadecimal digits; longer rows of pairs are fingerprints. All zeros and all ones name nobody."""

    name = "MAC_ADDRESS"
    pattern = re.compile(
        r"(?<![0-9A-Fa-f][:-])(?<![\w])[0-9A-Fa-f]{2}(?P<gap>[:-])(?:[0-9A-Fa-f]{2}(?P=gap)){4}[0-9A-Fa-f]{2}"
        r"(?!\w|[:-][0-9A-Fa-f])"
    )

    @staticmethod
    @override
    def accepts(found: str) -> bool:
        return len(set(found.lower()) - {":", "-"} | {"0"}) > 1 and set(found.lower()) - {":", "-"} != {"f"}
