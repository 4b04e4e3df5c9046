"""Comparing results: paired where two runs replayed one plan, side by side and without a verdict elsewhere."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import typer
from rich.console import Console
from tests.foreign_results.result_files import guidellm_report, vllm_result
from tests.foreign_results.stored_runs import store
from tests.gate.conftest import SyntheticArm, build_run
from tests.replay.request_rows import MS, request_row, request_table, unanswered_row
from typer.testing import CliRunner

from quantgate.cli.compare import compare as compare_command
from quantgate.comparison.arm_choice import paired_arms, parse_arm_pair
from quantgate.comparison.compare import Comparison, compare
from quantgate.comparison.document import comparison_document
from quantgate.comparison.paired import PairedFigure, compare_runs
from quantgate.comparison.stored_run import results_of_run
from quantgate.comparison.terminal import show_comparison
from quantgate.gate.evidence import Evidence
from quantgate.gate.families.registry import RULE_METRICS
from quantgate.gate.families.rule_metric import RuleQuestion
from quantgate.metrics.columns import is_equal
from quantgate.store.run_folder import LoadedRun
from quantgate.store.schemas import REQUESTS
from quantgate_engine.errors import ConfigurationError

app = typer.Typer()
app.command()(compare_command)


def two_runs(requests: int = 96, **other: Any) -> tuple[LoadedRun, LoadedRun]:
    """The same plan on the same arm in two runs; `other` changes the second one's arm."""
    whole = build_run(
        SyntheticArm("fp16", "baseline"), SyntheticArm("new", **other), requests=requests, quality_items_sha256="items"
    )
    return part_of(whole, "fp16", "first"), part_of(whole, "new", "second", called="fp16")


def part_of(run: LoadedRun, arm_id: str, run_id: str, called: str | None = None) -> LoadedRun:
    """A run with one arm of `run`, under another name where one is given."""
    name = called or arm_id
    (arm,) = [arm for arm in run.manifest.arms if arm.arm_id == arm_id]
    certificates = [entry for entry in run.manifest.fidelity if entry.arm_id == arm_id]
    manifest = run.manifest.model_copy(
        update={
            "run_id": run_id,
            "arms": [arm.model_copy(update={"arm_id": name, "role": "baseline"})],
            "fidelity": [entry.model_copy(update={"arm_id": name}) for entry in certificates],
        }
    )
    return replace(
        run, manifest=manifest, requests=_of(run.requests, arm_id, name), quality=_of(run.quality, arm_id, name)
    )


def _of(table: pa.Table, arm_id: str, name: str) -> pa.Table:
    rows = table.take(np.flatnonzero(is_equal(table, "arm_id", arm_id)))
    return rows.set_column(0, rows.schema.field("arm_id"), pa.array([name] * rows.num_rows))


def figure_of(run: LoadedRun, other: LoadedRun, metric: str, statistic: str) -> PairedFigure:
    (comparison,) = compare_runs(run, other, None, seed=0)
    (figure,) = [own for own in comparison.figures if (own.metric, own.statistic) == (metric, statistic)]
    return figure


def text_of(comparison: Any) -> str:
    written = io.StringIO()
    show_comparison(comparison, Console(width=300, file=written))
    return written.getvalue()


def test_pairs_across_runs_are_the_pairs_of_one_run() -> None:
    whole = build_run(SyntheticArm("fp16", "baseline"), SyntheticArm("new", slowdown=1.2), requests=96)
    first, second = part_of(whole, "fp16", "first"), part_of(whole, "new", "second")
    pairing = Evidence(whole).pair("fp16", "new")
    expected = RULE_METRICS["ttft_ms"].measure(
        pairing,
        RuleQuestion(statistic="p50", loss_unit="ratio", margin=0.0, confidence=0.95, resamples=4000, seed=0),
    )
    figure = figure_of(first, second, "ttft_ms", "p50")
    assert expected.estimate is not None
    assert (figure.estimate, figure.interval) == (expected.estimate.value, expected.estimate.interval)
    assert (figure.baseline, figure.candidate, figure.n) == (expected.baseline, expected.candidate, 96)


@pytest.mark.parametrize(("slowdown", "reading"), [(1.4, "worse"), (0.6, "better"), (1.0, "no difference shown")])
def test_the_interval_is_put_into_words(slowdown: float, reading: str) -> None:
    first, second = two_runs(slowdown=slowdown)
    figure = figure_of(first, second, "tpot_ms", "p50")
    assert figure.reading == reading
    assert figure.interval is not None
    assert figure.interval.lower <= slowdown - 1 <= figure.interval.upper


def test_a_difference_that_the_baseline_shows_against_itself_means_nothing() -> None:
    whole = build_run(
        SyntheticArm("fp16", "baseline"), SyntheticArm("fp16-aa", "aa", slowdown=1.5), SyntheticArm("new", slowdown=1.3)
    )
    second = part_of(whole, "new", "second", called="fp16")
    first = replace(whole, manifest=whole.manifest.model_copy(update={"run_id": "first"}))
    figure = figure_of(first, second, "tpot_ms", "p50")
    assert figure.interval is not None
    assert figure.interval.lower > 0
    assert figure.noise is not None
    assert figure.noise > 0.4
    assert figure.reading == "within the runs' own noise"
    assert figure_of(first, part_of(whole, "fp16", "same"), "tpot_ms", "p50").reading == "no difference shown"


def test_percentiles_that_n_cannot_carry_are_told_so() -> None:
    first, second = two_runs(requests=60)
    assert figure_of(first, second, "ttft_ms", "p95").reading == "60 are too few, 72 are needed"
    assert figure_of(first, second, "ttft_ms", "p95").estimate is None


def test_task_items_are_compared_where_both_runs_asked_the_same() -> None:
    first, second = two_runs(wrong=0.5)
    assert figure_of(first, second, "gold_preferred", "rate").reading == "worse"
    unlike = replace(second, manifest=second.manifest.model_copy(update={"quality_items_sha256": "others"}))
    (comparison,) = compare_runs(first, unlike, None, seed=0)
    assert "gold_preferred" not in {figure.metric for figure in comparison.figures}


def test_what_differs_between_the_runs_is_told() -> None:
    first, second = two_runs()
    environment = second.manifest.environment.model_copy(update={"cpu": "another", "threads": 1})
    arm = second.manifest.arms[0].model_copy(update={"scheme": "int4-g64", "compute_dtype": "fp32"})
    manifest = second.manifest.model_copy(update={"environment": environment, "arms": [arm], "fidelity": []})
    (comparison,) = compare_runs(first, replace(second, manifest=manifest), None, seed=0)
    notes = " ".join(comparison.notes)
    assert comparison.notes[0].startswith("The runs did not take turns: first began")
    assert "The processor differs: c, 2 cores against another, 2 cores." in notes
    assert "The precision differs: fp16 against int4-g64." in notes
    assert "The compute type differs: bf16 against fp32." in notes
    assert "fp16 of second was not given its load, or nothing certifies that it was." in notes


def test_requests_without_a_counterpart_are_counted() -> None:
    first, second = two_runs()
    shorter = replace(second, requests=second.requests.slice(0, 90))
    (comparison,) = compare_runs(first, shorter, None, seed=0)
    assert (comparison.requests, comparison.unpaired) == (90, 6)


def test_which_arms_belong_together() -> None:
    both = build_run(SyntheticArm("fp16", "baseline"), SyntheticArm("fp16-aa", "aa"), SyntheticArm("int8"), requests=8)
    alone = part_of(both, "int8", "alone")
    assert paired_arms(both, both, None) == [("fp16", "fp16"), ("int8", "int8")]
    assert paired_arms(both, alone, None) == [("int8", "int8")]
    renamed = part_of(both, "int8", "renamed", called="int4")
    assert paired_arms(both, renamed, None) == []
    assert paired_arms(alone, renamed, None) == [("int8", "int4")]
    assert paired_arms(both, renamed, ("fp16", "int4")) == [("fp16", "int4")]
    with pytest.raises(ConfigurationError, match=r"names 'int9', which run renamed has not; its arms are: int4\."):
        paired_arms(both, renamed, ("fp16", "int9"))


@pytest.mark.parametrize("written", ["fp16", ":", "a:", ":b"])
def test_arms_to_pair_are_two(written: str) -> None:
    with pytest.raises(ConfigurationError, match="expected an arm of the first run and one of the others"):
        parse_arm_pair(written)


def test_a_stored_arm_as_a_result_by_hand() -> None:
    run = build_run(SyntheticArm("fp16", "baseline"), requests=1)
    rows = [request_row("a"), request_row("b"), unanswered_row("c", "failed", ended_ns=50 * MS)]
    run = replace(run, requests=request_table(*rows))
    (result,) = results_of_run(run, "results/run")
    assert (result.label, result.finished, result.failed) == ("fp16 of run", 2, 1)
    # Scheduled at 0, sent at 1 ms, tokens at 11, 21 and 41 ms.
    means = {name: figures.mean for name, figures in result.times.items()}
    assert means == {
        "ttft_ms": 11.0, "ttft_from_sent_ms": 10.0, "tpot_ms": 15.0, "itl_ms": 15.0, "e2e_from_sent_ms": 40.0
    }  # fmt: skip
    assert result.rates["requests_per_s"].value == pytest.approx(2 / 0.050)
    assert "goodput_rps" not in result.rates


def test_a_run_with_failures_does_not_look_faster() -> None:
    whole = build_run(SyntheticArm("fp16", "baseline"), SyntheticArm("new", failed=48, noise=0.0), requests=96)
    first, second = part_of(whole, "fp16", "first"), part_of(whole, "new", "second", called="fp16")
    (served,), (half,) = results_of_run(first, "first"), results_of_run(second, "second")
    for name in ("ttft_ms", "tpot_ms", "e2e_from_sent_ms"):
        figures = half.times[name]
        assert (figures.n, figures.unanswered) == (96, 48)
        assert figures.percentiles["p95"].value == np.inf
        assert figures.percentiles["p50"].value > served.times[name].percentiles["p50"].value
    text = text_of(Comparison([served, half], [], [])).replace("\u00a0", " ")
    assert "∞ ms [∞ to ∞ ms]" in text
    assert ", of the 48 that were answered" in text
    assert "percentiles count an unanswered request as infinitely slow" in text
    times = comparison_document(Comparison([half], [], []))["results"][0]["times"]["ttft_ms"]
    assert (times["unanswered"], times["p95"]["value"]) == (48, None)
    json.dumps(times, allow_nan=False)


def test_failures_that_another_tool_leaves_out_are_noted(tmp_path: Path) -> None:
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path in paths:
        path.write_text(json.dumps(vllm_result(failed=7)))
    (first, _) = compare(paths).results
    assert any(note.startswith("7 requests failed and stand in none of its times") for note in first.notes)


def test_runs_of_one_plan_are_paired_and_all_else_is_told_to_be_unpaired(tmp_path: Path) -> None:
    first, second = two_runs()
    workload = second.manifest.workload
    assert workload is not None
    third = replace(
        second,
        manifest=second.manifest.model_copy(
            update={"run_id": "third", "workload": workload.model_copy(update={"plan_sha256": "another"})}
        ),
    )
    folders = [store(run, tmp_path / run.manifest.run_id) for run in (first, second, third)]
    foreign = tmp_path / "benchmarks.json"
    foreign.write_text(json.dumps(guidellm_report()))
    comparison = compare([*folders, foreign])
    assert [(own.baseline, own.candidate) for own in comparison.paired] == [("fp16 of first", "fp16 of second")]
    assert comparison.unpaired == ["third", f"{tmp_path.name} constant 2/s"]
    text = text_of(comparison)
    assert "Unpaired".lower() in text
    assert "no verdict" in text
    assert "TPOT: (last token - first token) / (output tokens - 1), per request; percentiles count" in text
    with pytest.raises(ConfigurationError, match="--arms pairs arms of two runs of the same plan, which are not"):
        compare([folders[0], foreign], arms=("fp16", "fp16"))
    document = comparison_document(comparison)
    assert document["verdict"] is None
    assert document["unpaired"]["results"] == comparison.unpaired


def test_numbers_that_n_does_not_carry_are_marked_on_the_terminal(tmp_path: Path) -> None:
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path in paths:
        path.write_text(json.dumps(vllm_result()))
    text = text_of(compare(paths))
    assert "300 ms†".replace(" ", "\u00a0") in text
    assert "so few requests carry no such percentile" in text


def test_text_of_other_tools_cannot_reach_the_terminal_raw(tmp_path: Path) -> None:
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path in paths:
        path.write_text(json.dumps(vllm_result(model_id="[red]x[/red]\u001b[2J")))
    text = text_of(compare(paths))
    assert "[red]x[/red]" in text
    assert "\u001b" not in text


def test_the_command_prints_one_json_document(tmp_path: Path) -> None:
    first, second = two_runs()
    folders = [str(store(run, tmp_path / run.manifest.run_id)) for run in (first, second)]
    result = CliRunner().invoke(app, [*folders, "--json"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["schema"] == "quantgate.comparison/1"
    assert [own["label"] for own in document["results"]] == ["fp16 of first", "fp16 of second"]
    (paired,) = document["paired"]
    assert {figure["metric"] for figure in paired["figures"]} >= {"ttft_ms", "tpot_ms", "e2e_ms", "failure_rate"}


def test_too_little_to_compare(tmp_path: Path) -> None:
    first, _ = two_runs()
    folder = store(first, tmp_path / "first")
    with pytest.raises(ConfigurationError, match="fewer than two results"):
        compare([folder])
    with pytest.raises(ConfigurationError, match="Run first is given twice"):
        compare([folder, folder])


def test_an_interrupted_run_is_compared_as_far_as_it_came(tmp_path: Path) -> None:
    first, _ = two_runs()
    cut = replace(
        first,
        manifest=first.manifest.model_copy(update={"state": "interrupted", "run_id": "cut"}),
        requests=first.requests.slice(0, 10),
    )
    (result,) = results_of_run(cut, "cut")
    assert result.notes == ("The run is interrupted: these are the requests that it got to.",)
    (comparison,) = compare_runs(first, cut, None, seed=0)
    assert "Run cut is interrupted: only the requests that it got to are compared." in comparison.notes
    empty = replace(cut, requests=REQUESTS.empty_table())
    assert results_of_run(empty, "cut") == []
    with pytest.raises(ConfigurationError, match="ended before any request was served"):
        compare([store(empty, tmp_path / "empty")])


def test_an_open_and_a_closed_loop_over_one_plan_are_not_paired(tmp_path: Path) -> None:
    first, second = two_runs()
    workload = second.manifest.workload
    assert workload is not None
    closed = workload.model_copy(update={"load": "closed loop, 4 clients", "clients": 4})
    second = replace(second, manifest=second.manifest.model_copy(update={"workload": closed}))
    comparison = compare([store(run, tmp_path / run.manifest.run_id) for run in (first, second)])
    assert comparison.paired == []
    [note] = [note for result in comparison.results for note in result.notes]
    assert note.startswith("Load: closed loop, 4 clients. A slower arm was sent less")
