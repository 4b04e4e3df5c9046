"""A run on a terminal: the key figures of all arms, what failed, what was noted, and the verdict with its reasons."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from quantgate.gate.verdict_model import Verdict
from quantgate.report.figures import Table
from quantgate.report.run_view import RunView
from quantgate.report.sections.arms import key_figures
from quantgate.report.sections.provenance import on_the_grid_before, previous_quantization
from quantgate.report.sections.verdict import VERDICT_WORDS, ArmCard, RuleRow, arm_cards
from quantgate.report.shared_prompts import sharing_lines
from quantgate.report.unanswered_requests import COUNTED_AS, any_unanswered, unanswered_lines
from quantgate.report.untrusted import visible
from quantgate.store.run_folder import LoadedRun

_STYLES = {
    "ship": "bold green",
    "do_not_ship": "bold red",
    "not_enough_evidence": "bold yellow",
    "invalid": "bold red",
    "pass": "green",
    "fail": "bold red",
    "inconclusive": "yellow",
    "uninformative": "dim",
}
_LONGEST_WORD = len("disagreement")
_LONGEST_NUMBER = len("-0.00123")


def measured_table(run: LoadedRun, console: Console) -> None:
    """Prints the key figures of every arm, what it failed, and what was noted of it: a run that nothing judges."""
    _print_measured(RunView(run, None), console)


def terminal_table(run: LoadedRun, verdict: Verdict, console: Console) -> None:
    """Prints the key figures and the verdict with its reasons. Words carry everything; colour only helps."""
    view = RunView(run, verdict)
    _print_measured(view, console)
    for card in arm_cards(view):
        _print_card(card, console)
    for note in verdict.notes:
        console.print(_text(f"Note: {note}"))
    before = previous_quantization(view)
    if before is not None:
        console.print(
            _text(
                f"Note: these weights were quantized before ({before}); the verdict holds for them and says little "
                "about the loss against the original 16-bit model."
            )
        )
    reproduced = on_the_grid_before(view)
    if reproduced is not None:
        console.print(_text(f"Note: {reproduced}"))
    symbol, words, _ = VERDICT_WORDS[verdict.verdict]
    console.print(_text(f"{symbol} {words}  (policy {verdict.policy}, exit code {verdict.exit_code})", verdict.verdict))


def _print_measured(view: RunView, console: Console) -> None:
    console.print(_rich(key_figures(view)))
    if any_unanswered(view):
        for line in unanswered_lines(view):
            console.print(_text(line, "fail"))
        console.print(_text(COUNTED_AS))
    for line in sharing_lines(view.run.manifest.fidelity):
        console.print(_text(line))
    for note, arm_ids in _noted(view).items():
        console.print(_text(f"Note on {', '.join(arm_ids)}: {note}"))


def _noted(view: RunView) -> dict[str, list[str]]:
    """Each note once, with the arms that it holds for: what the engine's settings bring holds for all of them."""
    arms_of: dict[str, list[str]] = {}
    for arm in view.arms:
        for note in arm.manifest.notes:
            arms_of.setdefault(note, []).append(arm.arm_id)
    return arms_of


def _print_card(card: ArmCard, console: Console) -> None:
    console.print()
    console.print(_text(f"{card.symbol} {card.arm_id}: {card.words}", card.verdict))
    for reason in card.reasons:
        console.print(_text(f"  - {reason}"))
    if card.rules or card.gains:
        console.print(_rules(card))


def _rules(card: ArmCard) -> RichTable:
    table = RichTable(box=None, pad_edge=False, padding=(0, 1, 0, 1))
    # On narrow terminals cells wrap between words; outcomes stay whole.
    table.add_column("rule", overflow="fold", min_width=_LONGEST_WORD)
    table.add_column("outcome", no_wrap=True)
    for header in ("loss or gain", "interval", "limit", "n"):
        table.add_column(header, overflow="fold", min_width=_LONGEST_NUMBER)
    for row in card.rules:
        table.add_row(*_cells(row))
    for row in card.gains:
        table.add_row(*_cells(row, "gain: "))
    return table


def _cells(row: RuleRow, prefix: str = "") -> list[Text]:
    outcome = "waived" if row.waived else f"{row.symbol} {row.outcome_word}"
    return [
        _text(prefix + row.title),
        _text(outcome, row.outcome),
        *map(_text, (row.estimate, row.interval, row.threshold, row.items)),
    ]


def _rich(source: Table) -> RichTable:
    table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for header in source.headers:
        table.add_column(_text(header), overflow="fold")
    for row in source.rows:
        table.add_row(*map(_text, row))
    return table


def _text(content: str, style: str = "") -> Text:
    """Plain text: no markup is read from it, and control characters cannot reach the terminal."""
    return Text(visible(content).replace("\n", " "), style=_STYLES.get(style, ""))
