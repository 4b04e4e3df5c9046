"""Which answers of a run are compared."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from tests.judging.answered_run import AA, BASELINE, CANDIDATE, answered_run, order_of, request_row, run_of

from quantgate.judging.answer_pairs import answer_pairs
from quantgate.judging.judge_run import prepare
from quantgate.judging.review.export_queue import export_queue
from quantgate.judging.session_words import cost_statement
from quantgate.store.redaction import without_text
from quantgate.store.run_folder import LoadedRun
from quantgate.store.schemas import QUALITY
from quantgate_engine.errors import BaselineError, ConfigurationError


def test_requests_that_both_arms_finished_are_paired_by_pass() -> None:
    rows = [
        request_row(BASELINE, 1, "a"),
        request_row(BASELINE, 1, "b", pass_index=1),
        request_row(BASELINE, 2, "c", session_id="s1"),
        request_row(BASELINE, 3, "d"),
        request_row(CANDIDATE, 1, "A"),
        request_row(CANDIDATE, 1, "B", pass_index=1),
        request_row(CANDIDATE, 2, "c"),
        request_row(CANDIDATE, 3, "", status="failed"),
        request_row(AA, 2, "C"),
    ]
    found = answer_pairs(run_of(rows))
    assert [(pair.key, pair.baseline, pair.other) for pairs in found.values() for pair in pairs] == [
        ((CANDIDATE, "r001", 0), "a", "A"),
        ((CANDIDATE, "r001", 1), "b", "B"),
        ((AA, "r002", 0), "c", "C"),
        ((CANDIDATE, "r002", 0), "c", "c"),
    ]
    pairs = {pair.key: pair for pairs in found.values() for pair in pairs}
    assert [pairs[CANDIDATE, "r001", number].cluster for number in (0, 1)] == ["r001", "r001"]
    assert pairs[CANDIDATE, "r002", 0].cluster == "s1"
    assert [pair.identical for pair in found["r002", 0]] == [False, True]
    assert pairs[CANDIDATE, "r001", 0].request == "Question r001?"


def test_requests_with_a_checker_are_left_to_it() -> None:
    run = answered_run(3, lambda arm, index: index + len(arm))
    row = dict.fromkeys(QUALITY.names) | {
        "arm_id": BASELINE, "tier": "task", "task": "code", "item_id": "r001", "cluster_id": "r001",
        "metric": "correct", "value": 1.0,
    }  # fmt: skip
    checked = replace(run, quality=pa.Table.from_pylist([row], schema=QUALITY))
    assert {request for request, _ in answer_pairs(checked)} == {"r000", "r002"}


def test_a_run_without_text_says_that_it_has_none() -> None:
    run = answered_run(3, lambda arm, index: index)
    with pytest.raises(ConfigurationError, match="was stored without text"):
        answer_pairs(replace(run, requests=without_text("requests", run.requests)))


def test_a_run_without_answers_or_without_a_baseline_says_so() -> None:
    with pytest.raises(ConfigurationError, match="finished no request"):
        answer_pairs(run_of([request_row(BASELINE, 1, None, status="failed"), request_row(CANDIDATE, 1, "x")]))
    with pytest.raises(ConfigurationError, match="nothing to compare"):
        answer_pairs(run_of([request_row(BASELINE, 1, "x")]))
    with pytest.raises(BaselineError, match="0 baselines"):
        answer_pairs(run_of([request_row(CANDIDATE, 1, "x")], arms=[]))


def talk(history: str) -> LoadedRun:
    """A session of two turns, and a request alone."""
    rows = [
        request_row(arm, index, f"{arm} {index}", session_id="s1" if index < 3 else None, turn=2 if index == 2 else 1)
        for arm in (BASELINE, CANDIDATE)
        for index in (1, 2, 3)
    ]
    run = run_of(rows)
    workload = run.manifest.workload
    assert workload is not None
    live = workload.model_copy(update={"history": history})
    return replace(run, manifest=run.manifest.model_copy(update={"workload": live}))


def test_later_turns_whose_prompts_hold_the_arms_own_answers_are_left_out() -> None:
    assert [request for request, _ in answer_pairs(talk("recorded"))] == ["r001", "r002", "r003"]
    assert [request for request, _ in answer_pairs(talk("live"))] == ["r001", "r003"]


def test_how_many_turns_are_left_out_is_said() -> None:
    sentence = "Later turns of sessions that are left out: 1; "
    assert cost_statement(prepare(talk("live"), order_of()), None)[0].startswith(sentence)
    assert sentence not in " ".join(cost_statement(prepare(talk("recorded"), order_of()), None))
    assert export_queue(talk("live"), 5, 1, None).later_turns == 1


def test_a_run_of_later_turns_alone_says_why_nothing_compares() -> None:
    only_later = talk("live")
    rows = [row for row in only_later.requests.to_pylist() if row["turn"] > 1]
    with pytest.raises(ConfigurationError, match=r"nothing to compare\. Later turns"):
        answer_pairs(replace(only_later, requests=pa.Table.from_pylist(rows, schema=only_later.requests.schema)))
