"""Lists are complete and links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.pages import DOCS, PAGES, ROOT, links, read, words_in_code


def _anchors(page: Path) -> set[str]:
    """Anchors as GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in _anchors(target), link


def test_the_documentation_lists_all_its_pages() -> None:
    listed = set(links(read("docs/README.md")))
    pages = {page.name for page in DOCS.glob("*.md")} - {"README.md"}
    folders = {f"{folder.name}/" for folder in DOCS.iterdir() if any(folder.glob("*.md"))}
    assert listed == pages | folders


def test_the_architecture_names_every_package() -> None:
    named = set(words_in_code(read("docs/architecture.md")))
    for source_root in ("harness/quantgate", "engine/quantgate_engine", "kernels/quantgate_kernels"):
        packages = {path.parent.name for path in (ROOT / source_root).glob("*/__init__.py")}
        assert packages <= named, source_root


def test_the_tests_page_lists_every_area() -> None:
    areas = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    assert areas <= set(words_in_code(read("tests/README.md")))


def test_published_schemas_are_named_where_users_look() -> None:
    published = {path.name for path in (ROOT / "suites" / "schemas").glob("*.json")}
    assert published <= set(words_in_code(read("suites/README.md")))
