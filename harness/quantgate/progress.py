"""Progress on standard error: bars with the time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

Advance = Callable[[float, str], None]
"""Called with how much is done in all and a short text of what is going on."""


class ProgressReporter:
    """Phases one after the other; `phase` yields the function that moves its bar."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def note(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def phase(self, title: str, total: float) -> Iterator[Advance]:
        if self.console.is_terminal:
            with self._bar(title, total) as advance:
                yield advance
        else:
            with self._lines(title, total) as advance:
                yield advance

    @contextmanager
    def _bar(self, title: str, total: float) -> Iterator[Advance]:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description:<10}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[doing]}"),
        )
        with Progress(*columns, console=self.console) as progress:
            task = progress.add_task(title, total=total, doing="")
            yield lambda done, doing: progress.update(task, completed=done, doing=doing)

    @contextmanager
    def _lines(self, title: str, total: float) -> Iterator[Advance]:
        self.note(f"{title}: started")
        last_tenth = 0

        def advance(done: float, doing: str) -> None:
            nonlocal last_tenth
            tenth = int(10 * done / total) if total else 10
            if tenth > last_tenth:
                last_tenth = tenth
                self.note(f"{title}: {tenth * 10} % {doing}".rstrip())

        yield advance
        self.note(f"{title}: done")
