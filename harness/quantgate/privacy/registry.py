"""The kinds of personal data that are known, in the order in which they are replaced."""

from __future__ import annotations

from quantgate.privacy.kind import PersonalDataKind

_kinds: list[PersonalDataKind] = []


def register_kind(cls: type[PersonalDataKind]) -> type[PersonalDataKind]:
    """Class decorator: adds the kind behind those that are registered already."""
    if any(kind.name == cls.name for kind in _kinds):
        raise ValueError(f"A kind of personal data called {cls.name!r} is registered already.")
    _kinds.append(cls())
    return cls


def known_kinds() -> tuple[PersonalDataKind, ...]:
    return tuple(_kinds)
