"""The group of all commands: a mistake on the command line is told in one sentence, as every other error is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from typer.core import TyperGroup
from typer.exceptions import TyperException
from typing_extensions import override

from quantgate_engine.errors import ConfigurationError


class CommandGroup(TyperGroup):
    """Raises ConfigurationError where the framework would draw a box of three lines."""

    @override
    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with _told_in_one_sentence():
            return super().make_context(*args, **kwargs)

    @override
    def invoke(self, ctx: Any) -> Any:
        with _told_in_one_sentence():
            return super().invoke(ctx)


@contextmanager
def _told_in_one_sentence() -> Iterator[None]:
    try:
        yield
    except TyperException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "quantgate"
        what = " ".join(error.format_message().split()).rstrip(".")
        raise ConfigurationError(f"{what}; `{command} --help` tells what is expected.") from None
