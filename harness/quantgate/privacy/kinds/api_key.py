"""Keys of well-known services, told by the prefixes that their makers publish for secret scanners."""

from __future__ import annotations

import re

from quantgate.privacy.kind import PatternKind
from quantgate.privacy.registry import register_kind

_FORMS = (
    r"sk-(?=[A-Za-z0-9_-]*[0-9])[A-Za-z0-9_-]{20,}",  # OpenAI, Anthropic and those that copied the form
    r"gh[pousr]_[A-Za-z0-9]{36,}",  # GitHub tokens
    r"github_pat_[A-Za-z0-9_]{22,}",
    r"glpat-[A-Za-z0-9_-]{20,}",  # GitLab
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",  # AWS access key ids
    r"AIza[A-Za-z0-9_-]{35}",  # Google
    r"xox[abeoprs]-[A-Za-z0-9-]{10,}",  # Slack
    r"hf_[A-Za-z0-9]{30,}",  # Hugging Face
    r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}",  # Stripe
    r"npm_[A-Za-z0-9]{36}",
    r"pypi-[A-Za-z0-9_-]{50,}",
)


@register_kind
class ApiKey(PatternKind):
    name = "API_KEY"
    pattern = re.compile(rf"(?<![A-Za-z0-9_-])(?:{'|'.join(_FORMS)})(?![A-Za-z0-9_-])")
