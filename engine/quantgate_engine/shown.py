"""Values of the user's as sentences show them: on one line, readable, and never longer than a sentence bears."""

from __future__ import annotations

LONGEST_SHOWN = 80
"""Characters; what is longer is cut, so that a list of thousands of entries stays one readable sentence."""

_UNWRITABLE = "a number of too many digits to write out"


def shown(value: object) -> str:
    """The value as Python writes it, which escapes line breaks and all that cannot be printed."""
    try:
        return cut(repr(value))
    except ValueError:
        # Python refuses to write integers of more than 4,300 digits.
        return _UNWRITABLE


def shown_name(name: str) -> str:
    """A name as it stands; in quotes, with escapes, where it is empty or has what cannot be seen or printed."""
    plain = name.isprintable() and name.strip() == name != ""
    return cut(name) if plain else shown(name)


def on_one_line(text: str, longest: int) -> str:
    """Words of another program, or with values of the user's in them: escaped and cut to `longest` characters."""
    return cut("".join(each if each.isprintable() else repr(each)[1:-1] for each in text), longest)


def cut(text: str, longest: int = LONGEST_SHOWN) -> str:
    """`text`, with an ellipsis in place of what is beyond `longest` characters."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
