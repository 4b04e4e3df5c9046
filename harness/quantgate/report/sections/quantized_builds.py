"""How the weights of arms were quantized, where a recipe did it before they were loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quantgate.report.figures import Table
from quantgate.report.numbers import NOTHING
from quantgate.report.run_view import ArmView, RunView

_METHODS = {"gptq": "GPTQ", "nearest": "round to nearest", "awq": "AWQ", "smoothquant": "SmoothQuant"}


def quantized_builds(view: RunView) -> Table | None:
    """A column per arm; None where no arm's record tells of a recipe."""
    arms = [arm for arm in view.arms if arm.role != "aa" and _section(arm.manifest.provenance, "recipe")]
    if not arms:
        return None
    rows = {
        "recipe": [_recipe(_section(arm.manifest.provenance, "recipe")) for arm in arms],
        "quantized from weights, SHA-256": [_told(arm, "model_weights_sha256") for arm in arms],
        "calibration text, SHA-256 of its tokens": [_told(arm, "calibration_sha256") for arm in arms],
        "sequences, tokens of each, seed": [_calibration(arm) for arm in arms],
        "kept apart from texts, SHA-256": [_told(arm, "forbidden_sha256") for arm in arms],
        "mean error of weights": [_error(arm, "mean_weight_error") for arm in arms],
        "of layers' outputs on the text": [_error(arm, "mean_output_error") for arm in arms],
        "written by": [f"quantgate {_told(arm, 'version')}, torch {_told(arm, 'torch')}" for arm in arms],
    }
    return Table(["quantized", *(arm.arm_id for arm in arms)], [[name, *cells] for name, cells in rows.items()])


def _recipe(recipe: Mapping[str, Any]) -> str:
    grid = _section(recipe, "grid")
    size = grid.get("group_size")
    words = [
        *(_METHODS.get(str(recipe.get(step)), "") for step in ("folding", "rounding")),
        f"{grid.get('bits')} bits",
        "whole rows" if size is None else f"groups of {size}",
        "" if grid.get("symmetric", True) else "zeros",
        "clipped" if grid.get("clip") else "",
    ]
    return ", ".join(word for word in words if word)


def _calibration(arm: ArmView) -> str:
    if arm.manifest.provenance.get("calibration_sha256") is None:
        return NOTHING
    settings = _section(_section(arm.manifest.provenance, "recipe"), "calibration")
    return ", ".join(str(settings.get(name)) for name in ("sequences", "tokens", "seed"))


def _error(arm: ArmView, name: str) -> str:
    value = arm.manifest.provenance.get(name)
    return f"{value:.4f}" if isinstance(value, float | int) else NOTHING


def _told(arm: ArmView, name: str) -> str:
    value = arm.manifest.provenance.get(name)
    return NOTHING if value is None else str(value)


def _section(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A record beside a folder is whatever its writer made it."""
    found = record.get(name)
    return found if isinstance(found, Mapping) else {}
