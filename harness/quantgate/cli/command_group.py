"""The group of all commands: a mistake on the command line is told in one sentence, as every other error is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from typer.core import TyperGroup
from typer.exceptions import TyperException
from typing_extensions import override

from quantgate.checked_words import without_kind
from quantgate_engine.errors import ConfigurationError


class CommandGroup(TyperGroup):
    """Raises ConfigurationError where the framework would draw a box of three lines."""

    @override
    def make_context(self, info_name: str | None, args: list[str], *others: Any, **extra: Any) -> Any:
        _refuse_empty(args)
        with _told_in_one_sentence():
            return super().make_context(info_name, args, *others, **extra)

    @override
    def invoke(self, ctx: Any) -> Any:
        with _told_in_one_sentence():
            return super().invoke(ctx)


def _refuse_empty(arguments: Sequence[str]) -> None:
    """An empty path would mean the current folder, an empty name something never meant: `--results "$UNSET"`."""
    for index, argument in enumerate(arguments):
        flag = argument.removesuffix("=") if argument.startswith("--") and argument.endswith("=") else ""
        if argument and not flag:
            continue
        before = arguments[index - 1] if index else ""
        place = flag or (before if before.startswith("-") else f"argument {index + 1}")
        raise ConfigurationError(
            f"{place}: expected a value, got an empty text; is the variable set that it was to come from?"
        )


@contextmanager
def _told_in_one_sentence() -> Iterator[None]:
    try:
        yield
    except TyperException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "quantgate"
        # The framework reads values by pydantic.
        error.message = without_kind(error.message)
        what = " ".join(error.format_message().split()).rstrip(".")
        raise ConfigurationError(f"{what}; `{command} --help` tells what is expected.") from None
