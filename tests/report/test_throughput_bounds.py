"""Beside the throughputs of arms in this process stands the bound of the steps that they ran, as far as it is known."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from typing import Any

import pytest
from tests.report.page_reader import read_page
from tests.report.stored_run import build_run

from quantgate.bounds.step_bounds import against_bound
from quantgate.report.figures import Table
from quantgate.report.render import render_report
from quantgate.report.run_view import RunView
from quantgate.report.sections.arms import arms_table, key_figures
from quantgate.report.sections.throughput_bounds import limits_table
from quantgate.store.manifest import MeasuredLimits, RunManifest, StepWork
from quantgate.store.run_folder import LoadedRun
from quantgate_kernels.roofline import DecoderWork, DeviceLimits

LIMITS = DeviceLimits(
    80e9, 0.94e12, 2.04e12, 0.51e12, threads=2, measured_by={"read_bytes_per_s": "cpp", "matmul_ops_per_s": "torch"}
)
WORK = DecoderWork(
    linear_bytes=212_000_000, head_bytes=56_000_000, kv_bytes_per_token=23_040, linear_parameters=106_000_000,
    head_parameters=28_000_000, query_size=576, windows=((None, 30),), linear_width="16-bit", width="16-bit",
)  # fmt: skip
RUN = build_run(requests=8, items=2)
FP16_STEPS = [row for row in RUN.steps.to_pylist() if row["arm_id"] == "fp16"]


def with_bounds(run: LoadedRun = RUN, **limits: Any) -> LoadedRun:
    arms = [arm.model_copy(update={"step_work": StepWork(**asdict(WORK))}) for arm in run.manifest.arms]
    measured = MeasuredLimits.model_validate(asdict(replace(LIMITS, **limits)))
    return replace(run, manifest=run.manifest.model_copy(update={"arms": arms, "device_limits": measured}))


def rows_of(table: Table) -> dict[str, dict[str, str]]:
    return {row[0]: dict(zip(table.headers[1:], row[1:], strict=True)) for row in table.rows}


def test_decode_is_held_against_reading_and_computing_step_by_step() -> None:
    """Worked out from the rows themselves: 4 blocks of 40 steps with contexts of 900 tokens."""
    alone = [row for row in FP16_STEPS if row["decode_tokens"] and not row["prefill_tokens"]]
    least = 0.0
    for row in alone:
        tokens = row["decode_tokens"]
        read = (212e6 + 56e6 + 900 * 23_040) / 80e9
        computed = (2 * 134e6 * tokens + 4 * 576 * 30 * 900) / 0.94e12
        least += max(read, computed)
    tokens, took = (sum(row[name] for row in alone) for name in ("decode_tokens", "duration_ns"))
    steps = RunView(RUN, None).arms[0].steps
    found = against_bound(steps, "decode", WORK, LIMITS)
    assert found is not None
    assert len(alone) == 160
    assert found.bound.limited_by == "memory"
    assert found.tok_s == pytest.approx(tokens / least)
    assert found.share == pytest.approx(least * 1e9 / took)


def test_prefill_is_held_against_what_its_steps_must_compute_at_least() -> None:
    alone = [row for row in FP16_STEPS if row["prefill_tokens"] and not row["decode_tokens"]]
    least = 0.0
    for row in alone:
        tokens, sequences = row["prefill_tokens"], row["batch_size_prefill"]
        assert sequences == 2
        pairs = 2 * (tokens / 2 * (tokens / 2 + 1) / 2) + (900 - tokens)
        computed = (2 * 106e6 * tokens + 4 * 576 * 30 * pairs) / 0.94e12
        least += max(computed, (212e6 + (900 - tokens) * 23_040) / 80e9)
    found = against_bound(RunView(RUN, None).arms[0].steps, "prefill", WORK, LIMITS)
    assert found is not None
    assert found.bound.limited_by == "arithmetic"
    assert found.tok_s == pytest.approx(sum(row["prefill_tokens"] for row in alone) / least)
    assert found.share == pytest.approx(least * 1e9 / sum(row["duration_ns"] for row in alone))


def test_the_arms_table_has_bound_and_share_below_each_throughput() -> None:
    table = arms_table(RunView(with_bounds(), None))
    names = [row[0] for row in table.rows]
    rows = rows_of(table)
    for kind, set_by in (("prefill", "arithmetic"), ("decode", "reading memory")):
        assert names.index(f"bound of {kind}") == names.index(f"{kind} throughput") + 1
        cells = rows[f"bound of {kind}"]
        assert set(cells) == {"fp16", "fp16-aa", "int8-w8a16", "int4-g64"}
        shares = {}
        for arm_id, cell in cells.items():
            written = re.fullmatch(rf"[\d,.]+ tokens/s, set by {set_by}; ([\d.]+)\u00a0% of it reached", cell)
            assert written, cell
            shares[arm_id] = float(written[1])
        # Work of about the same size in 0.6 of the baseline's time.
        assert shares["int4-g64"] == pytest.approx(shares["fp16"] / 0.6, rel=0.15)
    assert not {"bound of prefill", "bound of decode"} & {
        row[0] for row in key_figures(RunView(with_bounds(), None)).rows
    }


def test_runs_from_before_limits_were_measured_say_so() -> None:
    rows = rows_of(arms_table(RunView(RUN, None)))
    assert set(rows["bound of prefill"].values()) == set(rows["bound of decode"].values()) == {"not recorded"}
    text = read_page(render_report(RUN, None)).text
    assert "not recorded" in text
    assert "A bound is" not in text
    assert "16-bit products" not in text
    older = RUN.manifest.model_dump(by_alias=True, mode="json", exclude={"device_limits"})
    for arm in older["arms"]:
        del arm["step_work"]
    assert RunManifest.model_validate(older).device_limits is None


def test_servers_have_no_bound_and_a_run_of_servers_no_such_row() -> None:
    run = with_bounds()
    arms = [
        arm.model_copy(update={"target": "http://int4:8000", "step_work": None}) if arm.arm_id == "int4-g64" else arm
        for arm in run.manifest.arms
    ]
    mixed = replace(run, manifest=run.manifest.model_copy(update={"arms": arms}))
    assert rows_of(arms_table(RunView(mixed, None)))["bound of decode"]["int4-g64"] == "–"
    servers = [arm.model_copy(update={"target": "http://fp16:8000", "step_work": None}) for arm in arms]
    alone = replace(run, manifest=run.manifest.model_copy(update={"arms": servers, "device_limits": None}))
    assert not {"bound of prefill", "bound of decode"} & set(rows_of(arms_table(RunView(alone, None))))


def test_an_arm_whose_arithmetic_was_not_measured_has_no_bound() -> None:
    run = with_bounds(int8_ops_per_s=None)
    arms = [
        arm.model_copy(update={"step_work": StepWork(**asdict(replace(WORK, linear_width="int8")))})
        for arm in run.manifest.arms
    ]
    unknown = replace(run, manifest=run.manifest.model_copy(update={"arms": arms}))
    assert "bound of decode" not in rows_of(arms_table(RunView(unknown, None)))
    text = read_page(render_report(unknown, None)).text
    assert "not measured" in text


def test_the_page_says_what_a_bound_is_and_what_it_was_computed_from() -> None:
    text = " ".join(read_page(render_report(with_bounds(), None)).text.split())
    assert "a replay is not meant to reach it" in text
    assert "at most, with 2 threads" in text
    table = limits_table(RunView(with_bounds(), None))
    assert table is not None
    assert table.rows[:3] == [
        ["memory read", "80.0 GB/s", "cpp"],
        ["16-bit products", "940.0 GOP/s", "torch"],
        ["int8 products", "2,040.0 GOP/s", "–"],
    ]
    for cell in (cell for row in table.rows for cell in row):
        assert cell in text
