"""JSON web tokens (RFC 7519): header, claims and signature in base64url, divided by dots."""

from __future__ import annotations

import re

from quantgate.privacy.kind import PatternKind
from quantgate.privacy.registry import register_kind


@register_kind
class JsonWebToken(PatternKind):
    """`eyJ` is how base64 writes a JSON object's beginning."""

    name = "JSON_WEB_TOKEN"
    pattern = re.compile(
        r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{8,}(?![A-Za-z0-9_-])"
    )
