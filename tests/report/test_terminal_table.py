"""The verdict on a terminal."""

from __future__ import annotations

import io

from rich.console import Console
from tests.report.stored_run import build_run, build_verdict

from quantgate.gate.verdict_model import Verdict
from quantgate.report.terminal import terminal_table


def printed(verdict: Verdict, width: int = 140, **console: bool) -> str:
    out = io.StringIO()
    terminal_table(build_run(), verdict, Console(file=out, width=width, **console))
    return out.getvalue()


def test_it_says_the_verdict_and_the_reasons_without_colour() -> None:
    text = printed(build_verdict())
    for expected in ("int8-w8a16: Ship", "int4-g64: Do not ship", "RAG accuracy falls", "? inconclusive",
                     "○ uninformative", "TTFT p50", "Q4_1, groups of 32", "exit code 1"):  # fmt: skip
        assert expected in text
    assert "\x1b" not in text


def test_text_of_a_run_can_neither_style_nor_steer_the_terminal() -> None:
    verdict = build_verdict()
    hostile = verdict.model_copy(update={"notes": ["[bold red]x[/] \x1b[2J\x07"]})
    text = printed(hostile, force_terminal=True)
    assert "[bold red]x[/]" in text
    assert "\x1b[2J" not in text
    assert "\u241b[2J\u2407" in text


def test_a_terminal_of_80_columns_shows_every_word_whole() -> None:
    wide, narrow = printed(build_verdict(), width=300), printed(build_verdict(), width=80)
    assert max(map(len, narrow.splitlines())) <= 80
    assert set(wide.split()) <= set(narrow.split())
