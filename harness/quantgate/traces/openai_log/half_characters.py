r"""JSON may hold half a character: `"\ud83d"` without the `"\ude00"` that makes it one (RFC 8259, section 8.2)."""

from __future__ import annotations


def whole_text(text: str, field: str) -> str:
    """The text as it is. Raises ValueError, naming the field, where no request and no table could hold it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = ord(text[error.start])
        raise ValueError(
            rf"field {field}: expected text in whole characters, got half a one (\u{half:04x} without its other half); "
            "mend or remove the row"
        ) from None
    return text
