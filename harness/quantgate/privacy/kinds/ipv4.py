"""Internet addresses of version 4."""

from __future__ import annotations

import ipaddress
import re

from typing_extensions import override

from quantgate.privacy.kind import PatternKind
from quantgate.privacy.registry import register_kind


@register_kind
class Ipv4(PatternKind):
    """Four numbers up to 255, no more and no fewer. 127.*, 0.0.0.0 and 255.255.255.255 name no one."""

    name = "IPV4"
    pattern = re.compile(r"(?<![\w.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?!\w|\.[0-9])")

    @staticmethod
    @override
    def accepts(found: str) -> bool:
        try:
            address = ipaddress.IPv4Address(found)
        except ValueError:
            return False
        return not (address.is_loopback or address.is_unspecified or found == "255.255.255.255")
