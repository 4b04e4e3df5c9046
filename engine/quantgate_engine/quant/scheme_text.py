"""A choice of schemes as text: `int4-g64`, or with exceptions `int4-g64+*.down_proj=int8-w8a16+lm_head=int8-w8a16`."""

from __future__ import annotations

from collections.abc import Mapping

from quantgate_engine.errors import ConfigurationError

DEFAULT = "default"
SchemeChoice = str | Mapping[str, str]
"""That text; or from patterns of layers' names, and `default` for all that none fits, to schemes."""


def scheme_text(choice: SchemeChoice) -> str:
    """Raises ConfigurationError for a map without a default."""
    if isinstance(choice, str):
        return choice
    if DEFAULT not in choice:
        raise ConfigurationError(
            f"A map of schemes has no {DEFAULT!r}, the scheme of layers that no pattern fits; add one, such as "
            f"{DEFAULT}: int4-g64."
        )
    exceptions = (f"{pattern}={name}" for pattern, name in choice.items() if pattern != DEFAULT)
    return "+".join((choice[DEFAULT], *exceptions))


def has_exceptions(text: str) -> bool:
    return "+" in text


def parts_of(text: str) -> tuple[str, list[tuple[str, str]]]:
    """-> the name for most layers, and of each exception its pattern and name.

    Raises ConfigurationError for an exception that is not written so.
    """
    default, *exceptions = text.split("+")
    pairs = [exception.partition("=") for exception in exceptions]
    for pattern, equals, name in pairs:
        if not (pattern and equals and name):
            raise ConfigurationError(
                f"Scheme {text!r}: {pattern + equals + name!r} is none of its exceptions; expected PATTERN=SCHEME, "
                "such as *.down_proj=int8-w8a16."
            )
    return default, [(pattern, name) for pattern, _, name in pairs]
