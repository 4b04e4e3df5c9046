"""Makes text from models, traces and files safe to look at; HTML escaping is Jinja's and markupsafe's business.

Escaping alone stops markup. It does not stop a text from hiding what it says: control characters, direction
overrides and zero-width characters change what a reader sees without leaving a trace, so they are spelled out here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_HIDING = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, apart from tab and line feed
    "\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff9-\ufffb"  # invisible or direction-changing
    "\ud800-\udfff"  # lone surrogates, which UTF-8 cannot hold
    "\U000e0000-\U000e007f"  # tag characters
    "]"
)
_CONTROL_PICTURES = 0x2400


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The start of a text, and how many characters were left out after it."""

    text: str
    characters_cut: int


def visible(text: str) -> str:
    """Replace characters that hide or reorder text by a visible name: NUL by its picture, U+202E by `\\u202e`."""
    return _HIDING.sub(_spell_out, text)


def excerpt(text: str | None, limit: int) -> Excerpt | None:
    """The first `limit` characters of `text`; None where there is no text (runs stored without it)."""
    if text is None:
        return None
    return Excerpt(text[:limit], max(0, len(text) - limit))


def _spell_out(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(_CONTROL_PICTURES + code)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
