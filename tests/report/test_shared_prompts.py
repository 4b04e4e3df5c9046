"""Prefix sharing in the report and on the terminal: promised, found, off, not told."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console
from tests.report.stored_run import build_run

from quantgate.report.render import render_report
from quantgate.report.run_view import RunView
from quantgate.report.sections.fidelity import fidelity_section
from quantgate.report.terminal import measured_table
from quantgate.store.manifest import PrefixSharing
from quantgate.store.run_folder import LoadedRun

FOUND = PrefixSharing(
    block_tokens=16, cache_blocks=1024, enabled=True, requests=300, prompt_tokens=1000, promised_tokens=400,
    cached_tokens=350,
)  # fmt: skip
OFF = FOUND.model_copy(update={"enabled": False, "cached_tokens": 0})
NOT_TOLD = FOUND.model_copy(update={"enabled": None, "cached_tokens": None, "cache_blocks": None})
NOTHING_SHARED = OFF.model_copy(update={"promised_tokens": 0})


def run_with(*sharing: PrefixSharing | None) -> LoadedRun:
    run = build_run()
    certificates = [
        certificate.model_copy(update={"prefix_sharing": shared})
        for certificate, shared in zip(run.manifest.fidelity, sharing, strict=True)
    ]
    return replace(run, manifest=run.manifest.model_copy(update={"fidelity": certificates}))


def test_the_report_puts_what_was_found_beside_what_prompts_share() -> None:
    run = run_with(FOUND, OFF, NOT_TOLD, None)
    section = fidelity_section(RunView(run, None))
    assert section is not None
    assert section.sharing is not None
    assert [[cell.replace("\N{NO-BREAK SPACE}", " ") for cell in row] for row in section.sharing.rows] == [
        ["fp16", "40.0 %", "35.0 %", "300", "1,024, 16 tokens each"],
        ["fp16-aa", "40.0 %", "off", "300", "1,024, 16 tokens each"],
        ["int8-w8a16", "40.0 %", "not told", "300", "number not told, 16 tokens each"],
    ]
    assert "What the prompts share" in render_report(run, None)


def test_it_is_left_out_where_nothing_is_shared_and_in_older_runs() -> None:
    for sharing in (NOTHING_SHARED, None):
        assert "What the prompts share" not in render_report(run_with(*[sharing] * 4), None)


def test_the_terminal_has_a_line_for_arms_that_told_it() -> None:
    out = io.StringIO()
    measured_table(run_with(FOUND, OFF, NOT_TOLD, None), Console(file=out, width=160))
    lines = [line.replace("\N{NO-BREAK SPACE}", " ").strip() for line in out.getvalue().splitlines()]
    assert [line for line in lines if "sharing" in line] == [
        "Prefix sharing of fp16: prompts share 40.0 % of their tokens, 35.0 % came from the cache."
    ]
