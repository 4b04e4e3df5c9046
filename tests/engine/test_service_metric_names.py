"""The service metrics have the same names in the step log and in the engine's totals as on a server's `/metrics`."""

from __future__ import annotations

from dataclasses import fields

from quantgate_engine.engine_totals import EngineTotals
from quantgate_engine.step_record import StepRecord

PER_STEP = {
    "active_requests", "kv_cache_used_tokens", "kv_cache_block_utilization", "request_abort_count", "oom_count",
    "batch_size_prefill", "batch_size_decode", "preemption_count", "recomputed_tokens", "cached_prompt_tokens",
    "rejected_count",
}  # fmt: skip


def test_each_step_tells_every_metric_that_is_not_a_requests_own_latency() -> None:
    assert set(StepRecord._fields) >= PER_STEP


def test_what_is_counted_per_step_is_summed_under_the_same_name() -> None:
    sums = {name for name in PER_STEP if name.endswith(("_count", "_tokens")) and not name.startswith("kv_")}
    assert {field.name for field in fields(EngineTotals)} >= sums
