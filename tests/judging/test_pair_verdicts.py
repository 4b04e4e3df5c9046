"""From rows to verdicts, by hand-made tables."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from quantgate.judging.calibration import baseline_wins, calibrate, net_preference, position_bias
from quantgate.judging.pair_verdicts import JudgedPair, judged_pairs
from quantgate.stats.tango import tango_interval
from quantgate.store.schemas import JUDGEMENTS


def row(choice: str, order: str = "baseline_first", source: str = "judge", **changes: Any) -> dict[str, Any]:
    return {
        "arm_id": "int4", "request_id": "r1", "pass_index": 0, "cluster_id": "r1", "order": order, "choice": choice,
        "judge": "judge-1", "source": source, "error_kind": None, "reason": None, "prompt_tokens": 1,
        "completion_tokens": 1,
    } | changes  # fmt: skip


def both(first: str, second: str, request: str = "r1", **changes: Any) -> list[dict[str, Any]]:
    """What the judge said with the baseline's answer shown first, and shown second."""
    shared = {"request_id": request, "cluster_id": request} | changes
    return [row(first, **shared), row(second, "baseline_second", **shared)]


def pairs_of(rows: list[dict[str, Any]]) -> list[JudgedPair]:
    return judged_pairs(pa.Table.from_pylist(rows, schema=JUDGEMENTS))


@pytest.mark.parametrize(
    ("first", "second", "preferred", "disagree"),
    [
        ("1", "2", "baseline", False),
        ("2", "1", "other", False),
        ("tie", "tie", "tie", False),
        ("1", "1", "tie", True),
        ("2", "2", "tie", True),
        ("1", "tie", "tie", True),
        ("tie", "1", "tie", True),
        ("1", "unparsable", None, False),
        ("failed", "2", None, False),
    ],
)
def test_both_orders_make_a_verdict(first: str, second: str, preferred: str | None, disagree: bool) -> None:
    (pair,) = pairs_of(both(first, second))
    assert (pair.preferred, pair.orders_disagree, pair.source) == (preferred, disagree, "judge")


def test_one_order_alone_is_no_verdict() -> None:
    (pair,) = pairs_of([row("1")])
    assert pair.preferred is None


def test_a_later_answer_makes_good_for_a_failed_call() -> None:
    (pair,) = pairs_of([row("failed"), *both("1", "2")])
    assert pair.preferred == "baseline"


def test_identical_answers_are_a_tie() -> None:
    (pair,) = pairs_of([row("tie", source="identical")])
    assert (pair.preferred, pair.source) == ("tie", "identical")


def test_a_person_stands_above_the_judge_and_an_open_review_does_not() -> None:
    (pair,) = pairs_of([*both("1", "2"), row("1", "baseline_second", "human")])
    assert (pair.preferred, pair.source, pair.by_order) == ("other", "human", ("baseline", "baseline"))
    (pair,) = pairs_of([*both("1", "2"), row("open", source="human")])
    assert (pair.preferred, pair.source) == ("baseline", "judge")
    (pair,) = pairs_of([row("open", source="human")])
    assert pair.preferred is None


def test_pairs_are_told_apart_by_arm_request_and_pass() -> None:
    rows = [*both("1", "2"), *both("2", "1", pass_index=1), *both("2", "1", arm_id="int8"), *both("1", "2", "r0")]
    assert [(pair.key, pair.preferred) for pair in pairs_of(rows)] == [
        (("int4", "r0", 0), "baseline"),
        (("int4", "r1", 0), "baseline"),
        (("int4", "r1", 1), "other"),
        (("int8", "r1", 0), "other"),
    ]


def test_estimates_are_tangos() -> None:
    """20 pairs: 9 prefer the baseline, 4 the other, 5 went to the first place twice, 1 to the second, 1 is a tie."""
    said = [("1", "2")] * 9 + [("2", "1")] * 4 + [("1", "1")] * 5 + [("2", "2")] + [("tie", "tie")]
    pairs = pairs_of([row for index, (a, b) in enumerate(said) for row in both(a, b, f"r{index:02d}")])
    net = net_preference(pairs, 0.95)
    assert net == (pytest.approx(5 / 20), tango_interval(9, 4, 20), 20)
    wins = baseline_wins(pairs, 0.95)
    assert wins is not None
    assert (wins.share, wins.n) == (pytest.approx(9 / 13), 13)
    assert wins.interval == pytest.approx([(1 + limit) / 2 for limit in tango_interval(9, 4, 13)])
    position = position_bias(pairs, 0.95)
    assert position is not None
    # 38 choices between two answers: 13 + 10 went to the first, 13 + 2 to the second.
    assert (position.share, position.n) == (pytest.approx(23 / 38), 19)


def test_pairs_of_one_session_count_less() -> None:
    said = [("1", "2")] * 8 + [("2", "1")] * 8
    alone = [row for index, (a, b) in enumerate(said) for row in both(a, b, f"r{index:02d}")]
    together = [line | {"cluster_id": "early" if line["request_id"] < "r08" else "late"} for line in alone]
    narrow, wide = (net_preference(pairs_of(rows), 0.95) for rows in (alone, together))
    assert narrow is not None
    assert wide is not None
    assert wide.interval.upper - wide.interval.lower > 1.5 * (narrow.interval.upper - narrow.interval.lower)


def test_a_judge_is_unfit_where_it_prefers_one_of_two_equal_builds() -> None:
    rows = [line for index in range(30) for line in both("1", "2", f"r{index:02d}")]
    unfit = calibrate(pairs_of(rows), 0.95)
    assert unfit is not None
    assert not unfit.fit
    rows += [line for index in range(30) for line in both("2", "1", f"s{index:02d}")]
    fit = calibrate(pairs_of(rows), 0.95)
    assert fit is not None
    assert fit.fit


def test_calibration_leaves_people_and_missing_verdicts_out() -> None:
    assert calibrate([], 0.95) is None
    assert calibrate(pairs_of([row("1", source="human")]), 0.95) is None
    rows = [row("tie", source="identical", request_id=f"r{index}") for index in range(3)] + both("1", "2", "s")
    calibration = calibrate(pairs_of([*rows, *both("1", "failed", "t")]), 0.95)
    assert calibration is not None
    assert (calibration.identical, calibration.asked, calibration.preference.n) == (3, 1, 4)
