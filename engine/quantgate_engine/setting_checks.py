"""How groups of settings complain: one sentence that names the field, its value and what was expected."""

from __future__ import annotations

from collections.abc import Sequence

from quantgate_engine.errors import ConfigurationError


def require(valid: bool, field: str, value: object, expected: str) -> None:
    """Raises ConfigurationError unless `valid`."""
    if not valid:
        raise ConfigurationError(f"{field} is {value!r}; expected {expected}.")


def require_name(field: str, value: object, known: Sequence[str]) -> None:
    """Raises ConfigurationError unless `value` is one of the `known` names."""
    require(value in known, field, value, f"one of {', '.join(known)}")


def require_at_least(field: str, value: float | None, least: float, *, optional: bool = False) -> None:
    """Raises ConfigurationError for a number below `least`; None passes where it is `optional`."""
    allowed = optional if value is None else value >= least
    require(allowed, field, value, f"at least {least:g}" + (", or None" if optional else ""))
