"""Private keys in PEM blocks (RFC 7468), OpenSSH's included."""

from __future__ import annotations

import re

from quantgate.privacy.kind import PatternKind
from quantgate.privacy.registry import register_kind


@register_kind
class PrivateKey(PatternKind):
    """From the block's first line to its last, or to the end of a text that was cut off in between."""

    name = "PRIVATE_KEY"
    pattern = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
