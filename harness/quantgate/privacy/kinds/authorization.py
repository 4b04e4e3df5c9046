"""Tokens in HTTP authorization headers (RFC 6750 and RFC 7617)."""

from __future__ import annotations

import re

from quantgate.privacy.kind import PatternKind
from quantgate.privacy.registry import register_kind


@register_kind
class Authorization(PatternKind):
    """What follows `Bearer` or `Basic`; in prose ("bearer instruments") no word of 16 characters has a digit in it."""

    name = "AUTHORIZATION"
    pattern = re.compile(r"\b(?:Bearer|Basic)\s+(?P<secret>[A-Za-z0-9._~+/-]{16,}=*)", re.IGNORECASE)

    @staticmethod
    def accepts(found: str) -> bool:
        return any(letter.isdigit() for letter in found) or found.endswith("=")
