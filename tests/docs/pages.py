"""What the tests of the documentation read: Markdown pages, their tables, links and commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("*/README.md")])

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """The part under a heading, up to the next one of its rank or above."""
    rank = len(heading.split()[0])
    after = text[text.index(f"{heading}\n") + len(heading) :]
    return re.split(rf"^#{{1,{rank}}} ", after, maxsplit=1, flags=re.MULTILINE)[0]


def table_rows(text: str) -> list[list[str]]:
    """Cells of all table rows in the text, without head and rule lines."""
    lines = text.splitlines()
    rows = []
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if line.startswith("|") and not line.startswith("|---") and not following.startswith("|---"):
            rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))])
    return rows


def words_in_code(text: str) -> list[str]:
    """What stands between backticks, in order."""
    return _CODE.findall(text)


def links(text: str) -> list[str]:
    return _LINK.findall(text)


@dataclass(frozen=True)
class WrittenCommand:
    """A command line of `quantgate` as a page or a help text shows it, without the brackets and dots of a synopsis."""

    source: str
    words: tuple[str, ...]

    @property
    def flags(self) -> list[str]:
        return [flag for word in self.words for flag in re.findall(r"^--?[a-z][a-z-]*", word)]


def written_commands(page: Path) -> Iterator[WrittenCommand]:
    """Commands in the page's code blocks, with the lines that continue them."""
    code: list[str] = []
    fenced = False
    for line in page.read_text(encoding="utf-8").splitlines():
        fenced = fenced != line.startswith("```")
        code.append(line.strip() if fenced or line.startswith("    ") else "")
    text = re.sub(r"\\\n", " ", "\n".join(code))
    text = re.sub(r"\n(?=\[|--)", " ", text)
    for line in text.splitlines():
        if line.startswith("quantgate "):
            yield WrittenCommand(page.stem, words_of_command(line))


def words_of_command(line: str) -> tuple[str, ...]:
    return tuple(shlex.split(re.sub(r"[\[\]]|\.\.\.", " ", line), comments=True))
