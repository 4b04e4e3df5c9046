"""The report's section on judged answers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tests.judging.answered_run import AA, CANDIDATE, ScriptedJudge, answered_run, judge_all, preferring_baseline, store
from tests.report.page_reader import Page, read_page

from quantgate.judging.rows import human_row, table_of
from quantgate.report.render import render_report
from quantgate.report.run_view import RunView
from quantgate.report.sections.judged_answers import judged_answers
from quantgate.store.redaction import without_text
from quantgate.store.run_folder import LoadedRun

REQUESTS = 20
HOSTILE = "<script>alert(1)</script>\u202e <img src=x>"


def judged_run(folder: Path, **judge: object) -> LoadedRun:
    run = answered_run(REQUESTS, preferring_baseline(0.9, REQUESTS, seed=1))
    store(run, folder)
    return judge_all(run, folder, ScriptedJudge(**judge))[2]


def page_of(run: LoadedRun) -> Page:
    return read_page(render_report(run, None))


def test_a_run_that_was_not_judged_has_no_such_section() -> None:
    run = answered_run(3, preferring_baseline(0.5, 3, seed=1))
    assert judged_answers(RunView(run, None)) is None
    assert "Judged answers" not in page_of(run).text


def test_figures_and_examples_are_shown(tmp_path: Path) -> None:
    run = judged_run(tmp_path)
    section = judged_answers(RunView(run, None))
    assert section is not None
    rows = {row[0]: row for row in section.preferences.rows}
    assert set(rows) == {f"{AA} (baseline again)", CANDIDATE}
    lost, won = int(rows[CANDIDATE][2]), int(rows[CANDIDATE][3])
    assert lost + won == REQUESTS
    assert rows[CANDIDATE][-1].startswith(f"{(lost - won) * 100 / REQUESTS:.0f}")
    assert "50.0% of the choices" in section.position
    assert "the judge is fit" in section.calibration
    assert "80 calls, 3,200 prompt and 800 reply tokens" in section.spent
    (arm,) = section.examples
    assert [example.verdict for example in arm.shown] == ["baseline preferred"] * 6
    text = page_of(run).text
    for words in ("Judged answers", "judge-1", "examples, losses first", "An answer to r0"):
        assert words in text


def test_a_persons_word_is_marked_as_such(tmp_path: Path) -> None:
    run = judged_run(tmp_path)
    section = judged_answers(RunView(run, None))
    assert section is not None
    shown = section.examples[0].shown[0]
    assert shown.by == "the judge"
    first = next(
        row for row in run.judgements.to_pylist() if (row["arm_id"], row["request_id"]) == (CANDIDATE, shown.request_id)
    )

    class Pair:
        arm_id, request_id, pass_index, cluster = CANDIDATE, shown.request_id, 0, first["cluster_id"]

    rows = [*run.judgements.to_pylist(), human_row(Pair, "baseline_first", "1", reviewer="anna", note="Plainer.")]
    section = judged_answers(RunView(replace(run, judgements=table_of(rows)), None))
    assert section is not None
    example = next(each for each in section.examples[0].shown if each.request_id == shown.request_id)
    assert example.by == "a person"
    assert [reason.why.text for reason in example.reasons if reason.why] == ["Plainer."]
    assert example.reasons[0].order == "answer 1 is the baseline's"


def test_what_models_write_stays_text(tmp_path: Path) -> None:
    """The judge's reply is as untrusted as the answers."""
    reply = json.dumps({"better": "1", "reason": HOSTILE})
    run = judged_run(tmp_path, reply=lambda question: reply)
    page = page_of(run)
    assert len(page.attributes("script")) == 1
    assert "\u202e" not in page.text
    assert "<script>alert(1)</script>" in page.text


def test_without_text_no_reason_is_kept(tmp_path: Path) -> None:
    run = judged_run(tmp_path, reply=lambda question: '{"better": "1", "reason": "A secret reason."}')
    assert "A secret reason." in page_of(run).text
    emptied = replace(run, judgements=without_text("judgements", run.judgements))
    assert "A secret reason." not in page_of(emptied).text
