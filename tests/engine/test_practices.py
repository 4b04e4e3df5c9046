"""The benchmark tables of practices, in small on the simulated executor: what must hold whatever the machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from benchmarks.practice_command import run
from benchmarks.practice_cost_fit import StepTimes, fit_costs
from benchmarks.practice_executors import simulated_machine
from benchmarks.practice_figures import ENGINE, Figures
from benchmarks.practice_pressure import TRAFFIC, kv_pressure
from benchmarks.practice_report import markdown
from benchmarks.practice_runs import measure
from benchmarks.practice_setups import PracticeTable
from benchmarks.practice_tables import TABLES
from benchmarks.practice_traffic import LONG_OUTPUT_TOKENS, Traffic, draw_plan, largest_burst
from rich.console import Console

from quantgate.progress import ProgressReporter
from quantgate_engine.executor.base import ScheduledSequence
from quantgate_engine.executor.simulated import StepCosts, StepShape, shape_of
from quantgate_engine.sampling_params import SamplingParams

COSTS = StepCosts(
    base_ns=20_000_000, per_prefill_token_ns=800_000, per_decode_request_ns=1_500_000, per_prefill_pair_ns=100.0
)
SMALL = Traffic(requests=100)


@cache
def figures(name: str) -> Mapping[str, Figures]:
    return figures_of_table(TABLES[name](SMALL))


def figures_of_table(table: PracticeTable) -> Mapping[str, Figures]:
    progress = ProgressReporter(Console(quiet=True))
    measured = measure(table.rows.values(), simulated_machine(COSTS, {"fitted_to": "no model"}).replay, 1, progress)
    return {name: measured.median(setup) for name, setup in table.rows.items()}


def value(name: str, row: str, group: str, figure: str) -> float:
    found = figures(name)[row][group][figure]
    assert found is not None
    return found


def test_continuous_batching_brings_more_than_static_and_lets_nobody_wait_for_the_batch_before() -> None:
    static, continuous = "static", "continuous, mixed steps"
    for figure in ("output_tok_s", "goodput_rps"):
        assert value("batching", continuous, "all", figure) > value("batching", static, "all", figure)
    assert value("batching", continuous, "all", "ttft_p50_ms") < value("batching", static, "all", "ttft_p50_ms") / 2


def test_chunks_move_the_others_gaps_by_less_than_half_of_what_a_whole_long_prompt_does() -> None:
    rows = figures("chunked-prefill")
    conclude = TABLES["chunked-prefill"](SMALL).conclude
    assert conclude is not None
    chunks, one_piece, share = conclude(rows).values()
    assert chunks is not None
    assert one_piece is not None
    assert chunks < one_piece / 2
    assert one_piece > 100
    assert share == pytest.approx(chunks / one_piece)
    # A whole prompt stalls everybody for as long as it takes: 4,000 tokens and 8 million pairs.
    assert value("chunked-prefill", "one piece", "others", "gap_max_ms") > 4_000 * 0.8 + 800


def test_buckets_let_chat_pass_documents() -> None:
    one, buckets = figures("length-buckets")
    assert value("length-buckets", buckets, "chat", "ttft_p50_ms") < value("length-buckets", one, "chat", "ttft_p50_ms")
    assert value("length-buckets", buckets, "documents", "ttft_p50_ms") > value(
        "length-buckets", one, "documents", "ttft_p50_ms"
    )


def test_an_urgent_class_waits_less_than_in_one_queue() -> None:
    one, two = (value("slo-classes", row, "interactive", "ttft_p99_ms") for row in figures("slo-classes"))
    assert two < one / 1.5


def test_smaller_blocks_waste_less_and_let_more_requests_in() -> None:
    rows = list(figures("block-sizes"))
    waste = [value("block-sizes", row, ENGINE, "tail_waste") for row in rows]
    active = [value("block-sizes", row, ENGINE, "mean_active") for row in rows]
    assert waste == sorted(waste)
    assert waste[0] < 0.15
    assert waste[-1] > 0.7
    assert active[0] > 3 * active[-1]
    assert value("block-sizes", "a slab each", ENGINE, "peak_active") == 4


def test_a_device_of_their_own_serves_the_few_batch_requests_sooner() -> None:
    alike, by_class = (
        value("pools-on-two-devices", row, "batch", "ttft_p50_ms") for row in figures("pools-on-two-devices")
    )
    assert by_class < alike


def test_a_pool_for_long_prompts_lets_the_others_start_sooner() -> None:
    one, *pools = (value("pools-by-length", row, "others", "ttft_p99_ms") for row in figures("pools-by-length"))
    assert max(pools) < one


def test_under_pressure_everything_finishes_and_the_tax_is_what_preemptions_cost() -> None:
    table = kv_pressure(replace(TRAFFIC, requests=80))
    rows = figures_of_table(table)
    for name, row in rows.items():
        engine = row[ENGINE]
        assert row["all"]["requests"] == 80
        assert engine["oom_count"] == 0
        assert (engine["recompute_tax"] == 0) == (engine["recomputed_tokens"] == 0)
        if "optimistic" not in name and "past-future" not in name:
            assert engine["preemptions"] == 0
        if "swap" in name:
            # The host has room for all of it, so that nothing is computed twice.
            assert engine["recompute_tax"] == 0
    for victim in ("last-in", "least-computed", "lowest-class"):
        assert (rows[f"optimistic, recompute, {victim}"][ENGINE]["preemptions"] or 0) > 0
        assert (rows[f"optimistic, recompute, {victim}"][ENGINE]["recompute_tax"] or 0) > 0
        assert (rows[f"optimistic, swap, {victim}"][ENGINE]["preemptions"] or 0) > 0


def test_long_prompts_leave_the_other_requests_as_they_are() -> None:
    calm = draw_plan(SMALL)
    with_long = draw_plan(replace(SMALL, long_prompts=3, long_prompt_tokens=500))
    assert [request for request in with_long.requests if "long" not in request.tags] == list(calm.requests)
    long = [request for request in with_long.requests if "long" in request.tags]
    assert [(request.prompt_tokens, request.output_tokens) for request in long] == [(500, LONG_OUTPUT_TOKENS)] * 3
    assert draw_plan(replace(SMALL, seed=1)).sha256() != calm.sha256() == draw_plan(SMALL).sha256()


def test_traffic_is_bursty_and_has_the_wanted_rate() -> None:
    traffic = Traffic(requests=400)
    plan = draw_plan(traffic)
    assert len(plan.requests) == 400
    assert plan.span_ns / 1e9 == pytest.approx(400 / traffic.requests_per_s, rel=0.25)
    gaps = np.diff([request.scheduled_ns for request in plan.requests])
    assert gaps.std() / gaps.mean() > 2  # Poisson arrivals have 1.
    assert len(largest_burst(plan)) > 3 * traffic.requests_per_s


def test_shapes_count_what_attention_reads() -> None:
    def sequence(start: int, count: int) -> ScheduledSequence:
        return ScheduledSequence("a", tuple(range(count)), start, (0,), sample=False, params=SamplingParams())

    # The first token alone is a prefill; a chunk of 3 after 10 sees 11, 12 and 13 tokens.
    steps = [sequence(0, 1), sequence(7, 1), sequence(10, 3)]
    assert shape_of(steps) == StepShape(
        prefill_tokens=4, prefill_pairs=1 + 36, decode_requests=1, decode_context_tokens=8
    )
    costs = StepCosts(1_000, 100, 10, per_prefill_pair_ns=0.5, per_decode_context_token_ns=0.25)
    assert costs.duration_ns(shape_of(steps)) == 1_000 + 400 + 10 + round(18.5 + 2)


def test_the_fit_finds_the_costs_that_made_the_times() -> None:
    truth = StepCosts(
        25_000_000, 900_000, 1_200_000, 300_000, per_prefill_pair_ns=250.0, per_decode_context_token_ns=40.0
    )
    draws = np.random.default_rng(1)
    shapes = [
        StepShape(int(tokens), int(tokens * before), int(decodes), int(decodes * context))
        for tokens, before, decodes, context in draws.integers(0, (300, 2_000, 32, 500), size=(200, 4))
    ]
    times = StepTimes(shapes, [truth.duration_ns(shape) for shape in shapes], swapped_blocks=7, swap_ns=2_100_000)
    fit = fit_costs(times)
    for name in StepCosts.__slots__:
        assert getattr(fit.costs, name) == pytest.approx(getattr(truth, name), rel=1e-3), name
    assert fit.r_squared == pytest.approx(1)
    assert fit.median_error < 1e-6
    assert fit.steps == 200


def test_the_command_prints_tables_and_writes_every_repeat(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    costs, output = tmp_path / "costs.json", tmp_path / "tables.json"
    costs.write_text(json.dumps({"costs": {"base_ns": 10_000_000}, "fitted_to": "made up"}))
    sizes = ["--tables", "batching", "--requests", "30", "--repeats", "2"]
    run("", TABLES, SMALL, [*sizes, "--costs", str(costs), "--output", str(output)])
    document = json.loads(output.read_text())
    assert document["measured_on"] == "simulated, with the step costs of made up"
    assert document["traffic"]["requests"] == 30
    static = document["tables"]["batching"]["rows"]["static"]
    assert len(static["repeats"]) == 2
    assert static["median"]["all"]["requests"] == 30
    # Virtual time: a repeat repeats.
    assert static["repeats"][0] == static["repeats"][1] == static["median"]
    assert "continuous, mixed steps" in capsys.readouterr().out
    rows = markdown(document["tables"]["batching"]).splitlines()
    assert len(rows) == 5
    assert rows[2].startswith("| static |")
