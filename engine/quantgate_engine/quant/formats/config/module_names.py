"""How configurations name modules."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PLAIN = re.compile(r"[\w.-]+")


def any_names(entries: Iterable[str], layer: str) -> bool:
    return any(names_module(entry, layer) for entry in entries)


def names_module(entry: str, layer: str) -> bool:
    """Whether an entry of a list of modules, such as mlp.gate or model.layers.0, stands for the layer or holds it.

    Whole parts between dots have to agree: mlp.gate is not mlp.gate_proj. What is no plain name is a regular
    expression for the name's beginning, which ends at a dot as well.
    """
    if _PLAIN.fullmatch(entry):
        return f".{entry}." in f".{layer}."
    return re.match(rf"(?:{entry})(?:(?<=\.)|(?=\.|$))", layer) is not None


def checked_pattern(pattern: str) -> str:
    """The regular expression itself. Raises ValueError where it is none."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression ({error})") from None
    return pattern


def checked_entry(entry: str) -> str:
    """An entry for `names_module`. Raises ValueError where it is neither a plain name nor a regular expression."""
    return entry if _PLAIN.fullmatch(entry) else checked_pattern(entry)
