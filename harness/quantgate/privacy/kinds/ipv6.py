"""Internet addresses of version 6 (RFC 4291)."""

from __future__ import annotations

import ipaddress
import re

from typing_extensions import override

from quantgate.privacy.kind import PatternKind
from quantgate.privacy.registry import register_kind


@register_kind
class Ipv6(PatternKind):
    """Addresses of hosts. `::1` and `::` name no one; `a::b` and `1::2` are more likely code than addresses."""

    name = "IPV6"
    pattern = re.compile(
        r"(?<![\w:.])(?=[0-9A-Fa-f:]*:[0-9A-Fa-f]*:)[0-9A-Fa-f:]{1,38}(?:[0-9A-Fa-f]|::)(?:\.[0-9]{1,3}){0,3}"
        r"(?!\w|:[0-9A-Fa-f:])"
    )

    @staticmethod
    @override
    def accepts(found: str) -> bool:
        try:
            address = ipaddress.IPv6Address(found)
        except ValueError:
            return False
        looks_written_out = any(len(group) >= 3 for group in found.split(":")) and any(map(str.isdigit, found))
        return looks_written_out and not (address.is_loopback or address.is_unspecified)
