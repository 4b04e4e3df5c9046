"""Checks of what callers of the Python interface pass in: wrong kinds of values are refused in one sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from operator import index
from typing import Any

from quantgate_engine.errors import ConfigurationError
from quantgate_engine.shown import shown


def refuse_argument(name: str, value: object, expected: str) -> ConfigurationError:
    """The error to raise: what was given under which name, and what was expected."""
    return ConfigurationError(f"{name} is {shown(value)}; expected {expected}.")


def is_whole(value: object) -> bool:
    """A whole number of any library; True and False are none."""
    # Asked of each token of a prompt, nearly all of which are ints: to ask the abstract class takes ten times as long.
    return type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))


def is_finite(value: object) -> bool:
    """A number of any library that a float holds and that is neither infinite nor NaN; True and False are none."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def require_kind(name: str, value: object, kind: type[Any]) -> None:
    """Raises ConfigurationError unless `value` is an instance of `kind`."""
    if not isinstance(value, kind):
        raise refuse_argument(name, value, f"a value of the class {kind.__name__}")


def require_count(name: str, value: object, least: int, *, optional: bool = False) -> None:
    """Raises ConfigurationError unless `value` is a whole number from `least` on, or None where it is `optional`."""
    if value is None and optional:
        return
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise refuse_argument(name, value, f"a whole number of at least {least}" + (", or None" if optional else ""))


def token_ids_of(name: str, given: object, vocab_size: int | None = None) -> tuple[int, ...]:
    """Token ids as plain integers, from any iterable of whole numbers (lists, arrays, tensors).

    vocab_size: they have to be below it; None: only that they are whole. Raises ConfigurationError for anything else.
    """
    limits = "" if vocab_size is None else f" from 0 to {vocab_size - 1}"
    expected = f"a sequence of token ids, which are whole numbers{limits}"
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | bytearray):
        raise refuse_argument(name, given, expected)
    ids = []
    for item in given:
        try:
            token_id = index(item)
        except (TypeError, ValueError):
            raise refuse_argument(f"An entry of {name}", item, f"a token id, a whole number{limits}") from None
        if isinstance(item, bool) or (vocab_size is not None and not 0 <= token_id < vocab_size):
            raise refuse_argument(f"An entry of {name}", item, f"a token id, a whole number{limits}")
        ids.append(token_id)
    return tuple(ids)
