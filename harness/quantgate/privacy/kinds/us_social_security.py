"""Social security numbers of the United States."""

from __future__ import annotations

import re

from quantgate.privacy.kind import PatternKind
from quantgate.privacy.registry import register_kind


@register_kind
class UsSocialSecurity(PatternKind):
    """Area, group and serial with hyphens or spaces; areas 000, 666 and 900 up, group 00 and serial 0000 do not exist.

    Source: Social Security Administration, "Social Security Number Randomization" (2011). Nine digits without gaps are
    not taken: too much else is written so.
    """

    name = "US_SOCIAL_SECURITY"
    pattern = re.compile(
        r"(?<![\w.+-])(?!000|666|9)[0-9]{3}(?P<gap>[ -])(?!00)[0-9]{2}(?P=gap)(?!0000)[0-9]{4}(?![\w-]|\.[0-9])"
    )
