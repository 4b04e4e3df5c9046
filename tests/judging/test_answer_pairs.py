"""Which answers of a run are compared."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from tests.judging.answered_run import AA, BASELINE, CANDIDATE, answered_run, request_row, run_of

from quantgate.judging.answer_pairs import answer_pairs
from quantgate.store.redaction import without_text
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
