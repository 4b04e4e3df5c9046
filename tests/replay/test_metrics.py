"""Metrics against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from tests.replay.request_rows import MS, request_row, request_table, step_table, unanswered_row

from quantgate.metrics.endless_times import times_or_endless, unanswered
from quantgate.metrics.failed import FAILED
from quantgate.metrics.goodput_rps import goodput_rps
from quantgate.metrics.output_tokens_per_s import output_tokens_per_s
from quantgate.metrics.registry import (
    POOLED_METRICS,
    REQUEST_METRICS,
    STEP_METRICS,
    pooled_metric,
    request_metric,
    step_metric,
)
from quantgate.metrics.serving_seconds import serving_seconds
from quantgate.metrics.slo_attainment import slo_attainment
from quantgate_engine.errors import ConfigurationError


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ttft_ms", 11.0),
        ("ttft_from_sent_ms", 10.0),
        ("tpot_ms", 15.0),
        ("longest_gap_ms", 20.0),
        ("e2e_ms", 41.0),
        ("queue_time_ms", 2.0),
        ("prefill_latency_ms", 6.0),
        ("decode_latency_ms", 30.0),
        ("output_tokens", 3.0),
        ("failed", 0.0),
    ],
)
def test_request_metric_of_a_known_request(name: str, expected: float) -> None:
    table = request_table(request_row(), unanswered_row("r2", "failed", error="boom"))
    values = request_metric(name)(table)
    assert values.shape == (2,)
    assert values[0] == expected
    undefined = {"output_tokens": 0.0, "failed": 1.0}
    np.testing.assert_equal(values[1], undefined.get(name, np.nan))


def test_tpot_and_gaps_need_two_tokens() -> None:
    table = request_table(request_row(output_tokens=1, last_token_ns=11 * MS, token_times_ns=[11 * MS]))
    assert np.isnan(request_metric("tpot_ms")(table)).all()
    assert np.isnan(request_metric("longest_gap_ms")(table)).all()
    assert pooled_metric("itl_ms")(table).values.size == 0


def test_a_cut_off_request_has_a_ttft_but_no_end_to_end_latency() -> None:
    table = request_table(request_row(status="aborted", abort_cause="disconnect"))
    assert request_metric("ttft_ms")(table)[0] == 11.0
    assert np.isnan(request_metric("e2e_ms")(table)[0])
    assert np.isnan(request_metric("decode_latency_ms")(table)[0])


def test_itl_pools_the_gaps_of_each_request_and_never_a_gap_between_requests() -> None:
    table = request_table(
        request_row("a"),
        unanswered_row("b", "rejected"),
        request_row("c", token_times_ns=[50 * MS, 50 * MS, 55 * MS]),
    )
    gaps = pooled_metric("itl_ms")(table)
    assert gaps.values.tolist() == [10.0, 20.0, 0.0, 5.0]
    assert gaps.rows.tolist() == [0, 0, 2, 2]


def test_failed_counts_rejections_and_aborts_but_not_the_clients_own_disconnect() -> None:
    table = request_table(
        request_row("a"),
        unanswered_row("b", "rejected"),
        unanswered_row("c", "aborted", abort_cause="timeout"),
        request_row("d", status="aborted", abort_cause="disconnect"),
    )
    np.testing.assert_equal(FAILED(table), [0.0, 1.0, 1.0, np.nan])


def test_slo_attainment_holds_each_request_to_every_limit_of_its_own_class() -> None:
    table = request_table(
        request_row("meets both"),
        request_row("slow first token", scheduled_ns=-10 * MS),
        request_row("other class", slo_class="batch", scheduled_ns=-10 * MS),
        request_row("no limits", slo_class="offline", scheduled_ns=-900 * MS),
        request_row("one token", output_tokens=1, token_times_ns=[11 * MS]),
        unanswered_row("failed", "failed"),
        unanswered_row("rejected", "rejected"),
        request_row("cut off", status="aborted", abort_cause="disconnect"),
    )
    limits = {"interactive": {"ttft_ms": 20.0, "tpot_ms": 15.0}, "batch": {"e2e_ms": 60.0}}
    assert slo_attainment(table, limits).tolist() == [1, 0, 1, 1, 1, 0, 0, 0]
    assert slo_attainment(table, {"interactive": {"tpot_ms": 14.9}}).tolist() == [0, 0, 1, 1, 1, 0, 0, 0]


def test_an_answer_without_a_token_is_endless_and_outside_its_slo() -> None:
    table = request_table(
        request_row("answered"),
        unanswered_row("empty", "finished", finish_reason="stop"),
        unanswered_row("failed", "failed"),
        request_row("one token", output_tokens=1, token_times_ns=[11 * MS]),
    )
    assert slo_attainment(table, {"interactive": {"ttft_ms": 20.0}}).tolist() == [1, 0, 0, 1]
    assert slo_attainment(table, {}).tolist() == [1, 0, 0, 1]
    assert unanswered(table).tolist() == [False, True, True, False]
    assert times_or_endless("ttft_ms", table).tolist() == [11.0, np.inf, np.inf, 11.0]
    np.testing.assert_equal(times_or_endless("tpot_ms", table), [15.0, np.inf, np.inf, np.nan])
    assert request_metric("time_to_first_answer_ms")(table)[1] == np.inf


def test_goodput_and_throughput_count_only_the_time_in_which_the_arm_was_served() -> None:
    second = 1000 * MS
    table = request_table(
        request_row("a", scheduled_ns=0, ended_ns=2 * second),
        request_row("b", scheduled_ns=1 * second, first_token_ns=3 * second, ended_ns=4 * second),
        # The other arm had the machine from 4 s to 100 s.
        request_row(
            "c", block_index=1, scheduled_ns=100 * second, first_token_ns=100 * second + 5 * MS, ended_ns=101 * second
        ),
    )
    assert serving_seconds(table) == 5.0
    assert goodput_rps(table, {"interactive": {"ttft_ms": 100.0}}) == 2 / 5
    assert output_tokens_per_s(table) == 9 / 5


def test_nothing_served_has_no_rate() -> None:
    assert goodput_rps(request_table(), {}) is None
    assert output_tokens_per_s(request_table()) is None
    for name in REQUEST_METRICS:
        assert request_metric(name)(request_table()).shape == (0,)


def test_throughput_comes_from_pure_steps_and_says_how_much_it_covers() -> None:
    steps = step_table(
        {"duration_ns": 100 * MS, "prefill_tokens": 60, "batch_size_prefill": 2},
        {"duration_ns": 50 * MS, "decode_tokens": 8, "batch_size_decode": 8},
        {
            "duration_ns": 90 * MS,
            "prefill_tokens": 20,
            "decode_tokens": 24,
            "batch_size_prefill": 1,
            "batch_size_decode": 24,
        },
    )
    expected = {
        "prefill_tok_s": 600.0, "prefill_tok_s_share": 0.75, "decode_tok_s": 160.0, "decode_tok_s_share": 0.25,
        "batch_size_prefill": 1.5, "batch_size_decode": 16.0, "recompute_tax": 0.0,
    }  # fmt: skip
    assert {name: step_metric(name)(steps) for name in expected} == pytest.approx(expected, rel=1e-12)


def test_steps_that_cannot_tell_give_no_figure() -> None:
    mixed = step_table({"duration_ns": MS, "prefill_tokens": 1, "decode_tokens": 1})
    assert step_metric("prefill_tok_s")(mixed) is None
    assert step_metric("prefill_tok_s_share")(mixed) == 0.0
    for name in STEP_METRICS:
        assert step_metric(name)(step_table()) is None


def test_kv_utilization_weights_steps_by_allocated_block_time() -> None:
    steps = step_table(
        {"duration_ns": 10 * MS, "kv_allocated_blocks": 1, "kv_cache_block_utilization": 0.25},
        {"duration_ns": 30 * MS, "kv_allocated_blocks": 3, "kv_cache_block_utilization": 0.75},
    )
    used = (10 * 1 * 0.25 + 30 * 3 * 0.75) / (10 * 1 + 30 * 3)
    assert step_metric("kv_utilization")(steps) == pytest.approx(used, rel=1e-12)
    assert step_metric("tail_waste")(steps) == pytest.approx(1 - used, rel=1e-12)


def test_recompute_tax_is_the_share_of_all_computed_tokens() -> None:
    steps = step_table({"prefill_tokens": 30, "decode_tokens": 10, "recomputed_tokens": 10})
    assert step_metric("recompute_tax")(steps) == 0.25


def test_what_is_computed_again_is_no_prompt_that_the_cache_missed() -> None:
    """30 of 100 prompt tokens found, 70 computed; later 80 computed again beside the one that was drawn meanwhile."""
    steps = step_table(
        {"prefill_tokens": 70, "cached_prompt_tokens": 30, "duration_ns": 70 * MS},
        {"prefill_tokens": 81, "recomputed_tokens": 80, "duration_ns": 81 * MS},
    )
    assert step_metric("cached_prompt_share")(steps) == pytest.approx(30 / 101)
    assert step_metric("prefill_tok_s")(steps) == pytest.approx(1000.0)
    assert step_metric("recompute_tax")(steps) == pytest.approx(80 / 151)


def test_an_unknown_metric_names_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match=r"no request metric called 'ttft'; expected one of: ttft_ms, "):
        request_metric("ttft")


def test_registered_names_are_the_metrics_own() -> None:
    for registry in (REQUEST_METRICS, POOLED_METRICS, STEP_METRICS):
        assert all(name == metric.name for name, metric in registry.items())
