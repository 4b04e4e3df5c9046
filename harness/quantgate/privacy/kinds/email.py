"""E-mail addresses (the ordinary part of RFC 5322's)."""

from __future__ import annotations

import re

from quantgate.privacy.kind import PatternKind
from quantgate.privacy.registry import register_kind


@register_kind
class Email(PatternKind):
    """A name, `@`, and a host of two labels or more whose last is letters: versions (`react@18.2.0`) are none."""

    name = "EMAIL"
    pattern = re.compile(
        r"(?<![\w.+-])[\w.%+'-]*[\w%+-]@(?:[^\W_](?:[\w-]*[^\W_])?\.)+(?:[^\W\d_]{2,}|xn--[a-z0-9-]+)(?![\w@-])"
    )
