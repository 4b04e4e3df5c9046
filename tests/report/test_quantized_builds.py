"""How arms' weights were quantized, and what a comparison of weights that were quantized before says."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console
from tests.report.stored_run import build_run, build_verdict

from quantgate.report.render import render_report
from quantgate.report.run_view import RunView
from quantgate.report.sections.provenance import previous_quantization
from quantgate.report.terminal import terminal_table
from quantgate.store.run_folder import LoadedRun

SENTENCE = (
    "The model's weights lay on the grid of int4-g64 already: quantizing changed nothing but perhaps the rounding of "
    "scales, and this comparison says nothing of what the model was once made from."
)
RECIPE: dict[str, Any] = {
    "rounding": "nearest",
    "folding": "awq",
    "grid": {"bits": 4, "group_size": 64, "symmetric": False, "clip": {"steps": 20}},
    "calibration": {"sequences": 64, "tokens": 512, "seed": 11},
}
PREPARED: dict[str, Any] = {
    "stored_quantization": {"format": "gptq"}, "recipe": RECIPE, "model_weights_sha256": "1" * 64,
    "calibration_sha256": "2" * 64, "forbidden_sha256": "3" * 64, "mean_weight_error": 0.0123,
    "mean_output_error": None,
    "version": "1.0", "torch": "2.13", "reproduces_source_grid": False,
}  # fmt: skip


def run_with(provenance: dict[str, Any]) -> LoadedRun:
    run = build_run(requests=40, items=4)
    arms = [
        arm.model_copy(update={"provenance": provenance}) if arm.arm_id == "int4-g64" else arm
        for arm in run.manifest.arms
    ]
    return replace(run, manifest=run.manifest.model_copy(update={"arms": arms}))


def printed(run: LoadedRun) -> str:
    out = io.StringIO()
    terminal_table(run, build_verdict(), Console(file=out, width=400))
    return out.getvalue()


def page(run: LoadedRun) -> str:
    return render_report(run, build_verdict()).replace("&#39;", "'")


@pytest.mark.parametrize(
    "provenance",
    [{"load_reproduces_source_grid": True}, PREPARED | {"reproduces_source_grid": True}],
)
def test_a_build_of_weights_that_were_on_its_grid_is_told(provenance: dict[str, Any]) -> None:
    run = run_with(provenance)
    assert SENTENCE in page(run)
    assert SENTENCE in printed(run)


@pytest.mark.parametrize(
    "provenance",
    [
        {},
        {"load_reproduces_source_grid": False},
        PREPARED,
        # Of the checkpoint that this arm made its own, coarser weights of.
        {"reproduces_source_grid": True, "load_reproduces_source_grid": False},
    ],
)
def test_and_no_other_one_is(provenance: dict[str, Any]) -> None:
    run = run_with(provenance)
    assert "lay on the grid of" not in page(run)
    assert "lay on the grid of" not in printed(run)


def test_the_recipe_is_told_with_its_hashes_and_seed() -> None:
    html = page(run_with(PREPARED))
    for expected in ("AWQ, round to nearest, 4 bits, groups of 64, zeros, clipped", "1" * 64, "2" * 64, "3" * 64,
                     "64, 512, 11", "0.0123", "quantgate 1.0, torch 2.13"):  # fmt: skip
        assert expected in html
    assert "Builds quantized before" not in page(run_with({}))


def test_a_record_of_another_shape_breaks_no_report() -> None:
    odd = PREPARED | {"recipe": {"grid": [1], "rounding": {}, "calibration": "x"}, "mean_weight_error": "none"}
    assert "Builds quantized before" in page(run_with(odd))


def test_a_baseline_made_by_a_recipe_tells_of_the_model_it_was_made_of() -> None:
    run = build_run(requests=40, items=4)
    made_of = {"model_provenance": {"previous_quantization": {"type": "Q4_0", "group_size": 32}}}
    model = run.manifest.model.model_copy(update={"provenance": made_of})
    view = RunView(replace(run, manifest=run.manifest.model_copy(update={"model": model})), None)
    assert previous_quantization(view) == "Q4_0, groups of 32"
