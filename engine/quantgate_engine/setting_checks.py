"""How groups of settings complain: one sentence that names the field, its value and what was expected.

The limits of durations and counts are here and nowhere else: what passes can be turned into nanoseconds, or into the
length of a queue, without an overflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

from quantgate_engine.argument_checks import is_finite, is_whole
from quantgate_engine.errors import ConfigurationError
from quantgate_engine.shown import shown

MAX_SECONDS = 1e9
"""About 31 years, whose nanoseconds fit into 64 bits. A wait that may last for ever is None."""

MAX_COUNT = 10**15
"""More tokens, blocks or requests than any machine holds, and few enough for a length of the standard library."""

LONGEST_NAME = 80
"""Characters of a name that tables, metrics and sentences carry."""

_KINDS: dict[type, str] = {bool: "True or False", str: "text", tuple: "a tuple"}


class SettingError(ConfigurationError):
    """One setting is wrong, by itself or beside others of its group.

    field: the group and the way to the setting in it, with dots, such as `BatchingSettings.length_buckets`.
    beside: settings of the same group that the mistake may lie in as well.
    """

    def __init__(self, field: str, value: object, expected: str, beside: Sequence[str] = ()) -> None:
        super().__init__(f"{field} is {shown(value)}; expected {expected}.")
        self.field = field
        self.value = value
        self.expected = expected
        self.beside = tuple(beside)


def require(valid: bool, field: str, value: object, expected: str, *, beside: Sequence[str] = ()) -> None:
    """Raises SettingError unless `valid`; see there for `field` and `beside`."""
    if not valid:
        raise SettingError(field, value, expected, beside)


def require_name(field: str, value: object, known: Sequence[str]) -> None:
    """Raises SettingError unless `value` is one of the `known` names."""
    require(value in known, field, value, f"one of {', '.join(known)}")


def require_new_name(field: str, value: str) -> None:
    """Raises SettingError for a name that one cannot see in a sentence or a table, or that is far too long for them."""
    require(
        value.isprintable() and value.strip() == value and 1 <= len(value) <= LONGEST_NAME,
        field,
        value,
        f"a name of 1 to {LONGEST_NAME} printable characters without spaces at its ends",
    )


def require_distinct(field: str, names: Sequence[str]) -> None:
    """Raises SettingError where a name stands twice."""
    require(len(names) == len(set(names)), field, names, "no name twice")


def require_type(field: str, value: object, kind: type, *, optional: bool = False) -> None:
    """Raises SettingError unless `value` is of that type; None passes where it is `optional`."""
    expected = _KINDS.get(kind, f"a value of the class {kind.__name__}") + (", or None" if optional else "")
    require(isinstance(value, kind) or (optional and value is None), field, value, expected)


def require_number(field: str, value: Any) -> None:
    """Raises SettingError unless `value` is a number of at most MAX_COUNT either way; True and False are none."""
    require(is_finite(value) and abs(value) <= MAX_COUNT, field, value, f"a number of at most {MAX_COUNT:,}")


def require_at_least(field: str, value: Any, least: int, *, optional: bool = False) -> None:
    """Raises SettingError unless `value` is a whole number from `least` to MAX_COUNT.

    None passes where it is `optional`.
    """
    if optional and value is None:
        return
    or_none = ", or None" if optional else ""
    require(is_whole(value), field, value, f"a whole number of at least {least}{or_none}")
    require(value >= least, field, value, f"at least {least}{or_none}")
    require(value <= MAX_COUNT, field, value, f"at most {MAX_COUNT:,}{or_none}")


def require_seconds(field: str, value: Any, *, optional: bool = False, may_be_zero: bool = False) -> None:
    """Raises SettingError unless `value` is a number of seconds above 0 (or 0, if it may be) and up to MAX_SECONDS.

    None passes where it is `optional`.
    """
    if optional and value is None:
        return
    or_none = ", or None" if optional else ""
    least = "at least 0" if may_be_zero else "above 0"
    require(
        isinstance(value, Real) and not isinstance(value, bool), field, value, f"a number of seconds {least}{or_none}"
    )
    require(value > 0 or (may_be_zero and value == 0), field, value, least + or_none)
    require(value <= MAX_SECONDS, field, value, f"at most {MAX_SECONDS:,.0f} seconds{or_none}")
