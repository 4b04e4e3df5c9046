"""SLO limits from a measured baseline, by hand and as properties."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.replay.request_rows import MS, request_row, request_table, unanswered_row

from quantgate.metrics.slo_attainment import slo_attainment
from quantgate.setup_files.slo_proposal import NoProposal, Proposal, has_limit, propose_slos, round_up


def rows(count: int, **columns: Any) -> list[dict[str, Any]]:
    """Requests whose TTFT is 1, 2, ... ms and whose other 2 tokens come in 10 and 20 ms."""
    return [
        request_row(
            f"r{n}", first_token_ns=n * MS, last_token_ns=(n + 30) * MS,
            first_answer_ns=n * MS, token_times_ns=[n * MS, (n + 10) * MS, (n + 30) * MS], **columns,
        )
        for n in range(1, count + 1)
    ]  # fmt: skip


def proposal(found: Proposal | NoProposal) -> Proposal:
    assert isinstance(found, Proposal)
    return found


def refusal(found: Proposal | NoProposal) -> NoProposal:
    assert isinstance(found, NoProposal)
    return found


def test_limits_by_hand() -> None:
    """n = 100 carries p95, not p99. P[Bin(100, 0.95) >= 99] = 0.037 > 0.025, so that the upper limit is the maximum."""
    (own,) = propose_slos(request_table(*rows(100)), headroom=1.2).values()
    ttft = proposal(own["ttft_ms"])
    assert (ttft.percentile, ttft.value, ttft.upper, ttft.limit, ttft.n) == ("p95", 95.0, 100.0, 120.0, 100)
    assert proposal(own["tpot_ms"]).limit == 18.0
    # 130 ms x 1.2 = 156 ms, rounded up.
    assert proposal(own["e2e_ms"]).limit == 160.0
    assert proposal(own["longest_gap_ms"]).limit == 24.0


def test_p99_is_taken_where_n_carries_it() -> None:
    (own,) = propose_slos(request_table(*rows(400)), headroom=1.0).values()
    assert proposal(own["ttft_ms"]).percentile == "p99"
    assert proposal(own["ttft_ms"]).value == 396.0


def test_the_first_answer_gets_a_limit_of_its_own_only_where_the_model_reasons_aloud() -> None:
    (own,) = propose_slos(request_table(*rows(100)), headroom=1.0).values()
    assert "time_to_first_answer_ms" not in own
    reasoning = [row | {"first_answer_ns": row["last_token_ns"]} for row in rows(100)]
    (own,) = propose_slos(request_table(*reasoning), headroom=1.0).values()
    assert proposal(own["time_to_first_answer_ms"]).limit == 130.0


def test_too_few_requests_are_told_how_many_are_needed() -> None:
    (own,) = propose_slos(request_table(*rows(40)), headroom=1.2).values()
    assert refusal(own["ttft_ms"]) == NoProposal("40 requests carry no p95, 72 are needed", 40, 72)
    assert not has_limit({"interactive": own})


def test_each_class_has_its_own_limits_and_its_own_n() -> None:
    table = request_table(*rows(100), *rows(10, slo_class="batch"))
    proposals = propose_slos(table, headroom=1.2)
    assert list(proposals) == ["batch", "interactive"]
    assert refusal(proposals["batch"]["ttft_ms"]).n == 10
    assert proposal(proposals["interactive"]["ttft_ms"]).n == 100
    assert has_limit(proposals)


def test_failed_requests_are_infinitely_slow() -> None:
    failed = [unanswered_row(f"f{n}", "failed") for n in range(20)]
    (own,) = propose_slos(request_table(*rows(80), *failed), headroom=1.2).values()
    assert refusal(own["ttft_ms"]).reason == "20 of 100 requests failed or never came to it, p95 has no upper end"


def test_few_failures_cost_p99_and_leave_p95() -> None:
    failed = [unanswered_row(f"f{n}", "failed") for n in range(4)]
    (own,) = propose_slos(request_table(*rows(396), *failed), headroom=1.0).values()
    assert proposal(own["ttft_ms"]).percentile == "p95"


def test_a_metric_that_the_requests_do_not_have_gets_no_limit() -> None:
    one_token = [
        row | {"output_tokens": 1, "last_token_ns": row["first_token_ns"], "token_times_ns": [row["first_token_ns"]]}
        for row in rows(100)
    ]
    (own,) = propose_slos(request_table(*one_token), headroom=1.2).values()
    assert refusal(own["tpot_ms"]).reason == "0 requests carry no p95, 72 are needed"


def test_tokens_that_come_at_once_need_no_limit() -> None:
    at_once = [
        row | {"last_token_ns": row["first_token_ns"], "token_times_ns": [row["first_token_ns"]] * 3}
        for row in rows(100)
    ]
    (own,) = propose_slos(request_table(*at_once), headroom=1.2).values()
    assert refusal(own["tpot_ms"]).reason == "p95 was 0 ms"


@pytest.mark.parametrize(
    ("value", "rounded"),
    [(1234.0, 1300.0), (8.31, 8.4), (0.0123, 0.013), (100.0, 100.0), (99.1, 100.0), (120.0, 120.0), (1e6, 1e6)],
)
def test_rounding_by_hand(value: float, rounded: float) -> None:
    assert round_up(value) == rounded


@given(st.floats(min_value=1e-4, max_value=1e8))
def test_rounding_goes_up_by_at_most_a_tenth_and_leaves_two_digits(value: float) -> None:
    rounded = round_up(value)
    assert value * (1 - 1e-8) <= rounded <= value * 1.1 * (1 + 1e-8)
    digits = rounded / 10.0 ** (math.floor(math.log10(rounded) + 1e-9) - 1)
    assert digits == pytest.approx(round(digits), rel=1e-6)


@settings(max_examples=25)
@given(st.lists(st.integers(min_value=1, max_value=10_000), min_size=72, max_size=90), st.floats(1.0, 3.0))
def test_the_baseline_itself_keeps_the_limit_that_it_gave(times: list[int], headroom: float) -> None:
    """At least as often as the percentile says: the limit is never below the percentile itself."""
    table = request_table(
        *(request_row(f"r{n}", first_token_ns=time * MS, last_token_ns=(time + 1) * MS) for n, time in enumerate(times))
    )
    (own,) = propose_slos(table, headroom=headroom).values()
    limit = proposal(own["ttft_ms"]).limit
    assert slo_attainment(table, {"interactive": {"ttft_ms": limit}}).mean() >= 0.95
