"""The tables of practices are those of the results that the page links."""

from __future__ import annotations

from benchmarks.practice_page import page_with_tables
from benchmarks.practice_pressure import TABLES as PRESSURE_TABLES
from benchmarks.practice_tables import TABLES
from tests.docs.pages import read


def test_the_tables_are_those_of_the_results() -> None:
    page = read("docs/practices.md")
    assert page_with_tables(page) == page


def test_every_table_is_shown() -> None:
    page = read("docs/practices.md")
    for name in (*TABLES, *PRESSURE_TABLES):
        assert f"<!-- table: {name} -->" in page, name
