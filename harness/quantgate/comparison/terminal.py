"""A comparison on a terminal: what was measured, how each tool defines it, and what the pairs show."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from quantgate.comparison.compare import UNPAIRED, Comparison
from quantgate.comparison.paired import CONFIDENCE, PairedComparison, PairedFigure
from quantgate.foreign_results.measured_result import QUANTILES, RATES, TIMES, MeasuredResult
from quantgate.gate.wording import write, write_signed
from quantgate.report.numbers import NOTHING, count, limits, milliseconds, significant
from quantgate.report.untrusted import visible
from quantgate_engine.counted import counted

_TOO_FEW = "†"
_LEGEND = (
    "A positive loss means that the second is worse; A/A is how far a run's baseline may differ from itself. This is "
    "no verdict: no policy was asked."
)
Cell = Callable[[MeasuredResult], str]


def show_comparison(comparison: Comparison, console: Console) -> None:
    """Prints the table of all results, then the paired comparisons. Words carry everything; there is no verdict."""
    console.print(_table(["", *(result.label for result in comparison.results)], _rows(comparison.results)))
    for line in _definitions(comparison.results):
        console.print(_text(line))
    if any(_marked(result) for result in comparison.results):
        console.print(_text(f"{_TOO_FEW} the tool's own number: so few requests carry no such percentile."))
    for result in comparison.results:
        for note in result.notes:
            console.print(_text(f"Note on {result.label}: {note}"))
    for paired in comparison.paired:
        _show_paired(paired, console)
    if comparison.unpaired:
        console.print()
        console.print(_text(f"{', '.join(comparison.unpaired)}: {UNPAIRED[0].lower()}{UNPAIRED[1:]}", "bold yellow"))


def _rows(results: list[MeasuredResult]) -> list[list[str]]:
    rows: list[tuple[str, Cell]] = [
        ("tool", lambda result: result.tool),
        ("model", lambda result: result.model or NOTHING),
        ("requests finished", lambda result: _number(result.finished)),
        ("requests failed", lambda result: _number(result.failed)),
    ]
    for name, title in TIMES.items():
        rows.append((f"{title} mean", _mean(name)))
        rows += [(f"{title} {percentile}", _percentile(name, percentile)) for percentile in QUANTILES]
    rows += [(title, _rate(name, unit)) for name, (title, unit) in RATES.items()]
    written = [[title, *map(cell, results)] for title, cell in rows]
    return [row for row in written if any(cell != NOTHING for cell in row[1:])]


def _mean(name: str) -> Cell:
    def cell(result: MeasuredResult) -> str:
        figures = result.times.get(name)
        if figures is None:
            return NOTHING
        lost = figures.unanswered
        served = f", of the {count(figures.n - lost)} that were answered" if figures.n and lost else ""
        return milliseconds(figures.mean) + served

    return cell


def _percentile(name: str, percentile: str) -> Cell:
    def cell(result: MeasuredResult) -> str:
        figures = result.times.get(name)
        found = figures.percentiles.get(percentile) if figures else None
        if found is None:
            return NOTHING
        value = milliseconds(found.value) + ("" if found.carried else _TOO_FEW)
        return f"{value} {limits(*found.interval, milliseconds)}" if found.interval else value

    return cell


def _rate(name: str, unit: str) -> Cell:
    def cell(result: MeasuredResult) -> str:
        rate = result.rates.get(name)
        return f"{significant(rate.value)} {unit}" if rate else NOTHING

    return cell


def _number(value: int | None) -> str:
    return NOTHING if value is None else count(value)


def _definitions(results: list[MeasuredResult]) -> list[str]:
    """One line a metric: its formula, and whose it is where tools differ."""
    titles = TIMES | {name: title for name, (title, _unit) in RATES.items()}
    lines = []
    for name, title in titles.items():
        tools: dict[str, dict[str, None]] = {}
        for result in results:
            figure = result.times.get(name) or result.rates.get(name)
            if figure is not None:
                tools.setdefault(figure.definition, {})[result.tool] = None
        if tools:
            formulas = [f"{formula} ({', '.join(own)})" for formula, own in tools.items()]
            lines.append(f"{title}: {'; '.join(formulas)}")
    return lines


def _marked(result: MeasuredResult) -> bool:
    return any(not found.carried for figures in result.times.values() for found in figures.percentiles.values())


def _show_paired(paired: PairedComparison, console: Console) -> None:
    console.print()
    console.print(
        _text(
            f"{paired.candidate} against {paired.baseline}, the same {counted(paired.requests, 'request')}",
            "bold",
        )
    )
    if paired.unpaired:
        console.print(_text(f"Left out, without a counterpart: {counted(paired.unpaired, 'request')}."))
    console.print(
        _table(
            ["", paired.baseline, paired.candidate, "loss", f"{CONFIDENCE:.0%} interval", "A/A", "reading", "n"],
            [_paired_row(figure) for figure in paired.figures],
        )
    )
    for note in paired.notes:
        console.print(_text(f"Note: {note}"))
    console.print(_text(_LEGEND))


def _paired_row(figure: PairedFigure) -> list[str]:
    interval = NOTHING
    if figure.interval is not None:
        low, high = (write_signed(limit, figure.unit) for limit in figure.interval)
        interval = f"{low} to {high}"
    return [
        figure.title,
        NOTHING if figure.baseline is None else write(figure.baseline, figure.value_unit),
        NOTHING if figure.candidate is None else write(figure.candidate, figure.value_unit),
        NOTHING if figure.estimate is None else write_signed(figure.estimate, figure.unit),
        interval,
        NOTHING if figure.noise is None else f"up to {write(figure.noise, figure.unit)}",
        figure.reading,
        count(figure.n),
    ]


def _table(headers: list[str], rows: list[list[str]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for header in headers:
        table.add_column(_text(header), overflow="fold")
    for row in rows:
        table.add_row(*map(_text, row))
    return table


def _text(content: str, style: str = "") -> Text:
    """Plain text: no markup is read from it, and control characters cannot reach the terminal."""
    return Text(visible(content).replace("\n", " "), style=style)
