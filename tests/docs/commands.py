"""The command line as it is: every command with the options that its help shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.docs.pages import WrittenCommand, words_of_command
from typer.main import get_command

from quantgate.cli.main import app

HELP = {"--help"}


def all_commands() -> dict[tuple[str, ...], Any]:
    """Path of names, such as ("policy", "init"), -> command; the program itself has the empty path."""
    return dict(_commands(get_command(app), ()))


def _commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from _commands(child, (*path, name))


def options(command: Any, *, hidden: bool = False) -> set[str]:
    """Every spelling of every option, those that the help hides only on request."""
    return {
        spelling
        for parameter in command.params
        if parameter.param_type_name == "option" and (hidden or not parameter.hidden)
        for spelling in (*parameter.opts, *parameter.secondary_opts)
    } - HELP


def examples(command: Any) -> Iterator[WrittenCommand]:
    """The commands that stand as examples in its help."""
    for paragraph in (command.help or "").split("\n\n"):
        if paragraph.strip().startswith("Example: "):
            yield WrittenCommand(
                f"help of {command.name}", words_of_command(paragraph.strip().removeprefix("Example: "))
            )
