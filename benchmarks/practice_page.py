"""Puts the tables of results into docs/practices.md.

    python benchmarks/practice_page.py benchmarks/results/DATE-practices-torch.json ...

The page links the results that it shows, and each of its tables is made from them: one for each document that has a
table of that name. Without arguments the links stay, and the tables are made anew.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

# The modules beside this script are read as parts of `benchmarks`, by the tests too.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.practice_report import Document, markdown

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "practices.md"

_LINK = re.compile(r"\]\(\.\./(benchmarks/results/[^)]+\.json)\)")
_LINKS = re.compile(r"(?<=<!-- results -->\n).*?(?=<!-- end of results -->)", re.DOTALL)
_TABLE = re.compile(r"(?<=<!-- table: )(?P<name>[\w-]+) -->\n.*?(?=<!-- end of table -->)", re.DOTALL)


def page_with_tables(page: str) -> str:
    """The page with its tables as the results that it links have them."""
    documents = [json.loads((ROOT / path).read_text(encoding="utf-8")) for path in _LINK.findall(page)]
    return _TABLE.sub(lambda found: f"{found['name']} -->\n\n{_tables(found['name'], documents)}\n\n", page)


def page_with_links(page: str, results: Sequence[Path]) -> str:
    """The page with links to these results in place of those that it has."""
    links = "\n".join(f"- [{path.stem}](../benchmarks/results/{path.name})" for path in results)
    return _LINKS.sub(f"\n{links}\n\n", page)


def _tables(name: str, documents: Sequence[Document]) -> str:
    """Raises LookupError where no document has the table."""
    found = [document for document in documents if name in document["tables"]]
    if not found:
        raise LookupError(f"no results that {PAGE.name} links have a table {name}")
    return "\n\n".join(f"{_caption(document)}\n\n{markdown(document['tables'][name])}" for document in found)


def _caption(document: Document) -> str:
    repeats = document["repeats"]
    return f"*{document['measured_on']}{f', medians of {repeats}' if repeats > 1 else ''}:*"


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    if len(sys.argv) > 1:
        page = page_with_links(page, [Path(name) for name in sys.argv[1:]])
    PAGE.write_text(page_with_tables(page), encoding="utf-8")


if __name__ == "__main__":
    main()
