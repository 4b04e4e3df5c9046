"""Characters that JSON split: "\\ud83d" at the end of one piece of text and "\\ude00" at the start of the next."""

from __future__ import annotations


class SurrogateJoiner:
    """Hands text on in whole characters; half a character waits for its other half.

    JSON writes characters beyond U+FFFF as two surrogates (RFC 8259, section 7); a server that cuts text between them
    sends two strings that no file can hold. A half that never meets its other half becomes U+FFFD.
    """

    def __init__(self) -> None:
        self._held = ""

    def push(self, text: str) -> str:
        joined = self._held + text
        self._held = ""
        if "\ud800" <= joined[-1:] <= "\udbff":
            joined, self._held = joined[:-1], joined[-1]
        return mended(joined)

    def end(self) -> str:
        """The replacement of a half that was left, or nothing."""
        held, self._held = self._held, ""
        return mended(held)


def is_whole(text: str) -> bool:
    """Whether no half of a character stands alone in it."""
    return mended(text) == text


def mended(text: str) -> str:
    """The text with U+FFFD for each half of a character that stands alone: no file and no request can hold one."""
    if text.isascii():
        return text
    return text.encode("utf-16", errors="surrogatepass").decode("utf-16", errors="replace")
