"""The report's section on the KV cache: hand-computed shares, and who held far more than the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from tests.report.stored_run import build_run

from quantgate.metrics.registry import step_metric
from quantgate.report.render import render_report
from quantgate.report.run_view import RunView
from quantgate.report.sections.kv_cache import kv_cache_section
from quantgate.store.manifest import KVStay
from quantgate.store.run_folder import LoadedRun
from quantgate.store.schemas import REQUESTS, STEPS


@pytest.fixture(scope="module")
def run() -> LoadedRun:
    return build_run(requests=40)


def changed(table: pa.Table, schema: pa.Schema, row: int, **values: Any) -> pa.Table:
    rows = table.to_pylist()
    rows[row] |= values
    return pa.Table.from_pylist(rows, schema=schema)


def test_each_arm_has_its_shares(run: LoadedRun) -> None:
    alike = {"prefill_tokens": 30, "decode_tokens": 10, "kv_cache_block_utilization": 0.8}
    steps = changed(run.steps.slice(0, 2), STEPS, 0, **alike, recomputed_tokens=5, cached_prompt_tokens=20)
    steps = changed(steps, STEPS, 1, **alike, preemption_count=3)
    section = kv_cache_section(RunView(replace(run, steps=steps), None))
    assert section is not None
    [row] = section.table.rows
    assert [cell.replace("\N{NO-BREAK SPACE}", " ") for cell in row] == [
        "fp16", "bfloat16", "\N{EN DASH}", "200", "80.0 %", "20.0 %", "3", "6.25 %", "26.7 %",
    ]  # fmt: skip
    assert section.holders is None


def test_the_share_from_the_cache_is_none_where_nothing_was_prefilled(run: LoadedRun) -> None:
    steps = changed(run.steps.slice(0, 1), STEPS, 0, prefill_tokens=0, cached_prompt_tokens=0)
    assert step_metric("cached_prompt_share")(steps) is None


def test_who_holds_far_more_than_the_others_is_named(run: LoadedRun) -> None:
    hog = run.requests.column("request_id")[7].as_py()
    requests = changed(run.requests, REQUESTS, 7, kv_peak_blocks=5000, kv_block_seconds=1234.0)
    html = render_report(replace(run, requests=requests), None)
    section = kv_cache_section(RunView(replace(run, requests=requests), None))
    assert section is not None
    assert section.holders is not None
    [row] = section.holders.rows
    assert row[:3] == [hog, "fp16", "5,000"]
    assert "holds 5,000 blocks" in row[-1]
    assert row[-1] in html


def test_a_session_that_never_lets_go_is_named_once_for_its_engine(run: LoadedRun) -> None:
    stay = KVStay(holder="s7@1", kind="session", blocks=9, held_seconds=1200.0, block_seconds=10_800.0)
    arms = [
        arm.model_copy(update={"kv_sessions": [stay]}) if arm.arm_id.startswith("fp16") else arm
        for arm in run.manifest.arms
    ]
    section = kv_cache_section(RunView(replace(run, manifest=run.manifest.model_copy(update={"arms": arms})), None))
    assert section is not None
    assert section.holders is not None
    [row] = section.holders.rows
    assert row[:3] == ["session s7@1", "fp16", "9"]
    assert "has held blocks for" in row[-1]


def test_a_run_without_a_step_log_has_no_such_section(run: LoadedRun) -> None:
    silent = replace(run, steps=STEPS.empty_table())
    assert kv_cache_section(RunView(silent, None)) is None
    assert 'id="kv-cache"' not in render_report(silent, None)
    assert 'id="kv-cache"' in render_report(run, None)
