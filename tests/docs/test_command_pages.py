"""The pages of the commands tell every option, and no page or help shows a command that would be refused."""

from __future__ import annotations

import re

import pytest
from tests.docs.commands import HELP, all_commands, examples, options
from tests.docs.pages import DOCS, PAGES, ROOT, WrittenCommand, links, read, written_commands

COMMANDS = all_commands()
WRITTEN = [
    *(command for page in PAGES for command in written_commands(page)),
    *(example for command in COMMANDS.values() for example in examples(command)),
]


def _page_of(path: tuple[str, ...]) -> str:
    return f"docs/commands/{path[0] if path else 'README'}.md"


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(path) or "quantgate")
def test_page_names_every_option(path: tuple[str, ...]) -> None:
    words = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", read(_page_of(path))))
    assert options(COMMANDS[path]) <= words


@pytest.mark.parametrize("path", [path for path in COMMANDS if path], ids=" ".join)
def test_help_of_every_command_has_an_example(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    assert hasattr(command, "commands") or list(examples(command))


def test_every_command_has_a_page_and_a_line_in_the_list() -> None:
    names = {path[0] for path in COMMANDS if path}
    assert {page.stem for page in (DOCS / "commands").glob("*.md")} == names | {"README"}
    assert {f"{name}.md" for name in names} <= set(links(read("docs/commands/README.md")))


@pytest.mark.parametrize("written", WRITTEN, ids=lambda command: f"{command.source}: {' '.join(command.words)[:60]}")
def test_written_command_exists_with_its_options(written: WrittenCommand) -> None:
    path: tuple[str, ...] = ()
    for word in written.words[1:]:
        if (*path, word) not in COMMANDS:
            break
        path = (*path, word)
    assert path, "no such command"
    assert set(written.flags) <= options(COMMANDS[path], hidden=True) | HELP


def test_readme_names_no_file_that_a_clone_lacks() -> None:
    files = {
        word
        for command in written_commands(ROOT / "README.md")
        for word in command.words
        if re.fullmatch(r"[\w/.-]+\.(csv|jsonl|json|yaml)", word)
    }
    assert files
    assert {file for file in files if not (ROOT / file).is_file()} == set()
