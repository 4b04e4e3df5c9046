"""Names and passwords inside URLs (RFC 3986, section 3.2.1)."""

from __future__ import annotations

import re

from quantgate.privacy.kind import PatternKind
from quantgate.privacy.registry import register_kind


@register_kind
class UrlCredentials(PatternKind):
    """What stands between `://` and the `@` before the host."""

    name = "URL_CREDENTIALS"
    pattern = re.compile(r"(?<=[A-Za-z0-9]://)[^\s/?#@\[\]\"'<>]+(?=@)")
