"""Flags that several commands take, as one dataclass. Typer itself reads flags from a function's parameters alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def takes_flag_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command with each parameter whose type is a dataclass in place of the flags that its fields describe.

    A field's type is `Annotated[..., typer.Option(...)]`; its name and default are the flag's. The groups' parameters
    are keyword-only, so that they need no default of their own.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    flat = Signature(list(_flat_parameters(command, hints)))

    @wraps(command)
    def with_flags(*arguments: Any, **named: Any) -> None:
        bound = flat.bind(*arguments, **named)
        bound.apply_defaults()
        values = dict(bound.arguments)
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    with_flags.__signature__ = flat  # type: ignore[attr-defined]  # what `inspect.signature` and typer go by
    with_flags.__annotations__ = {parameter.name: parameter.annotation for parameter in flat.parameters.values()}
    return with_flags


def _flat_parameters(command: Callable[..., None], hints: dict[str, Any]) -> Iterator[Parameter]:
    for parameter in signature(command).parameters.values():
        hint = hints[parameter.name]
        if not is_dataclass(hint):
            yield parameter.replace(annotation=hint)
            continue
        types = get_type_hints(hint, include_extras=True)
        for field in fields(hint):
            default = Parameter.empty if field.default is MISSING else field.default
            yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=types[field.name])
