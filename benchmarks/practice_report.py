"""From figures to the JSON document, and from the document to tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from benchmarks.practice_runs import Measured
from benchmarks.practice_setups import PracticeTable
from rich.console import Console
from rich.table import Table

Document = Mapping[str, Any]


def table_document(table: PracticeTable, measured: Measured) -> dict[str, Any]:
    """The table with all figures of each row: medians, also those that no column shows, and each of several repeats."""
    medians = {name: measured.median(setup) for name, setup in table.rows.items()}
    repeats = {name: measured.repeats(setup) for name, setup in table.rows.items()}
    return {
        "question": table.question,
        "columns": [asdict(column) for column in table.columns],
        "rows": {
            name: {"median": medians[name], "repeats": repeats[name] if len(repeats[name]) > 1 else []}
            for name in table.rows
        },
        "conclusions": dict(table.conclude(medians)) if table.conclude is not None else {},
    }


def print_table(document: Document, console: Console) -> None:
    table = Table(title=document["question"], title_justify="left")
    head, *rows = _cells(document)
    for number, title in enumerate(head):
        table.add_column(title, justify="right" if number else "left", no_wrap=not number)
    for row in rows:
        table.add_row(*row)
    console.print(table)
    for line in _conclusions(document):
        console.print(line, highlight=False)


def markdown(document: Document) -> str:
    """The table and what follows from it, for the documentation."""
    head, *rows = _cells(document)
    lines = [head, ["---", *("---:" for _ in head[1:])], *rows]
    table = [f"| {' | '.join(cells)} |" for cells in lines]
    conclusions = _conclusions(document)
    return "\n".join([*table, *(["", "; ".join(conclusions) + "."] if conclusions else [])])


def _cells(document: Document) -> list[list[str]]:
    """The head, then a line for each row."""
    columns = document["columns"]
    rows = [[name, *(_cell(row["median"], column) for column in columns)] for name, row in document["rows"].items()]
    return [["", *(column["title"] for column in columns)], *rows]


def _cell(figures: Document, column: Document) -> str:
    return _text(figures.get(column["group"], {}).get(column["figure"]), column["form"])


def _conclusions(document: Document) -> list[str]:
    return [f"{words}: {_text(value, ',.2f')}" for words, value in document["conclusions"].items()]


def _text(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
